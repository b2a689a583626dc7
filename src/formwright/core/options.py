"""Parts and their options: the fields of a frozen dataclass, read from JSON, YAML or the command line and written back.

A part (a searcher, an evaluator, a stage, ...) is a frozen dataclass. Its fields are its options: there is no second
list of them anywhere. In JSON a part is its name, or an object with its `name` and the options that differ from their
defaults. Fields may hold numbers, text, lists, mappings, other dataclasses and other parts. A field of the type of a
stage holds another stage, and is written as the name of that stage.
"""

import dataclasses
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar, get_args, get_origin

from formwright.core.codec import UNIONS, Json, JsonReader, JsonWriter, Range, at, hints_of, show
from formwright.core.errors import IllegalInput, UnknownName, nearest_hint
from formwright.core.protocols import SpaceLike
from formwright.core.registry import Registry

T = TypeVar("T")


class Part:
    """Base class of a kind of part: each kind knows its registry, each part its name there.

    `PANELS` names what the part contributes to the page of a run (`formwright.report.panels`).
    """

    NAME: ClassVar[str] = ""
    PANELS: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def registry(cls) -> Registry[Any]:
        """Give the registry of this kind of part."""
        raise NotImplementedError(f"{cls.__name__}.registry")

    @classmethod
    def read_options(cls, data: Mapping[str, Json], reader: "PartReader", where: str) -> Any:
        """Build this part from its options."""
        return reader.record(cls, data, where)

    def write_options(self, writer: "PartWriter") -> dict[str, Json]:
        """Give the options that differ from their defaults."""
        return writer.record(self)


def option(
    default: Any = dataclasses.MISSING,
    about: str = "",
    *,
    extent: bool = False,
    hashed: bool = True,
    least: float | None = None,
    most: float | None = None,
) -> Any:
    """Declare an option of a part with a line of help, and the least and most that a number may be.

    An `extent` only says how far a run goes (trials, hours): a run may be resumed with another value of it. What may
    hold mappings is not `hashed`.
    """
    bounds = None if least is None and most is None else Range(least, most)
    metadata = {"about": about, "extent": extent, "range": bounds}
    if isinstance(default, dict | list):
        return field(default_factory=lambda: type(default)(default), metadata=metadata, hash=False)
    return field(default=default, metadata=metadata, hash=None if hashed else False)


@dataclass(frozen=True)
class OptionHelp:
    """Describe one option of a part, as lists and help texts show it."""

    name: str
    type: str
    default: str
    about: str = ""


def options_of(kind: type[Any], without: Sequence[str] = ()) -> list[OptionHelp]:
    """List the options of a part by their paths, such as `training.steps`; other parts in its fields stay closed."""
    found, hints = [], hints_of(kind)
    for one in dataclasses.fields(kind):
        if not one.init or one.name in without:
            continue
        hint, default = hints[one.name], _default_of(one)
        group = next(filter(_is_group, get_args(hint) if get_origin(hint) in UNIONS else (hint,)), None)
        if group is None:
            found.append(OptionHelp(one.name, type_words(hint), _value_words(default), one.metadata.get("about", "")))
            continue
        for inner in options_of(group):
            own = isinstance(default, group) and "." not in inner.name
            words = _value_words(getattr(default, inner.name)) if own else inner.default
            found.append(dataclasses.replace(inner, name=f"{one.name}.{inner.name}", default=words))
    return found


def _is_group(kind: Any) -> bool:
    return isinstance(kind, type) and dataclasses.is_dataclass(kind) and not issubclass(kind, Part)


def type_words(kind: Any) -> str:
    """Write a type as a help text shows it."""
    origin, members = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return type_words(members[0])
    if origin is Literal:
        return " | ".join(map(str, members))
    if origin in UNIONS:
        return " | ".join(type_words(member) for member in members)
    if origin is tuple or origin in (list, Sequence):
        return f"list of {type_words(members[0])}"
    if kind is type(None):
        return "null"
    if origin is Callable:
        return "function"
    return getattr(kind, "__name__", str(kind)) if origin is None else "mapping"


def _default_of(one: "dataclasses.Field[Any]") -> Any:
    return one.default if one.default_factory is dataclasses.MISSING else one.default_factory()


def _value_words(value: Any) -> str:
    if value is dataclasses.MISSING:
        return "required"
    if isinstance(value, Part):
        return value.NAME
    if isinstance(value, tuple | list):
        return ", ".join(map(str, value)) or "none"
    return "null" if value is None else type(value).__name__ if dataclasses.is_dataclass(value) else str(value)


class PartWriter(JsonWriter):
    """Write parts as JSON; `names` are those of stages, by identity, and extents are left out on request."""

    def __init__(self, names: Mapping[int, str] | None = None, *, extents: bool = True, whole: bool = False) -> None:
        self._names, self._extents, self._whole = names or {}, extents, whole

    def value(self, item: Any) -> Json:
        if id(item) in self._names:
            return self._names[id(item)]
        if isinstance(item, PythonObject):
            return {"python": item.source}
        if isinstance(item, Part) and item.NAME:  # one without a name is a class of the user's own
            return {"name": item.NAME, **item.write_options(self)}
        plain = item is None or isinstance(item, bool | int | float | str | Mapping | list | tuple)
        group = dataclasses.is_dataclass(item) and not isinstance(item, type | SpaceLike | Part)
        return super().value(item) if plain or group else {"python": describe(item)}

    def wants(self, field: "dataclasses.Field[Any]", item: Any) -> bool:
        left_out = not field.init or (field.metadata.get("extent") and not self._extents)
        return not left_out and (self._whole or super().wants(field, item))


def describe(value: Any) -> str:
    """Name an object of Python that JSON cannot hold, such as a function or a space of the user's own."""
    name = getattr(value, "__qualname__", None) or getattr(value, "name", None) or type(value).__qualname__
    if isinstance(value, SpaceLike):  # told apart by content: two spaces of one name are not the same run
        return f"{value.name}#{hashlib.sha256(repr(getattr(value, 'root', value.name)).encode()).hexdigest()[:12]}"
    module = getattr(value, "__module__", None) or type(value).__module__
    return f"{module}:{name}"


@dataclass(frozen=True)
class PythonObject:
    """Stand for an object that a run was given in Python and that no file can hold; `source` names it."""

    source: str

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise self._missing()

    def __call__(self, *_: Any, **__: Any) -> Any:
        raise self._missing()

    def _missing(self) -> IllegalInput:
        return IllegalInput(
            f"this run was started from Python with an object of its own ({self.source}): resume it by running that "
            "program again"
        )


class PartReader(JsonReader):
    """Read parts from JSON, collecting every fault; `stages` are those that fields may name."""

    NOUN = "an option"

    def __init__(self, stages: Mapping[str, Any] | None = None) -> None:
        super().__init__()
        self.stages: dict[str, Any] = dict(stages or {})

    def read(self, kind: Any, data: Json, where: str = "") -> Any:
        if isinstance(data, Mapping) and data.keys() == {"python"}:
            return PythonObject(str(data["python"]))
        if isinstance(data, str) and data in self.stages and any(map(_is_stage, get_args(kind) or (kind,))):
            return self.stages[data]
        if _is_stage(kind):
            known, hint = ", ".join(self.stages) or "none", nearest_hint(str(data), self.stages)
            return self.fault(where, f"must name an earlier stage ({known}), not {show(data)}.{hint}")
        if isinstance(kind, type) and issubclass(kind, Part):
            return self._part(kind, data, where)
        return super().read(kind, data, where)

    def _part(self, kind: type[Part], data: Json, where: str) -> Any:
        if isinstance(data, kind):
            return data
        options = {"name": data} if isinstance(data, str) else data
        name = options.get("name") if isinstance(options, Mapping) else None
        if not isinstance(name, str):
            return self.fault(where, f"must be a name, or an object with a name, not {show(data)}")
        try:
            found = kind.registry().get(name)
        except LookupError as error:
            return self.fault(where, str(error))
        if not hasattr(found, "read_options"):
            return kind.read_options(options, self, where)
        return found.read_options({key: value for key, value in options.items() if key != "name"}, self, where)


_STAGES = "formwright.pipeline"

STAGES: Registry[Any] = Registry(
    "stage",
    {
        "super-network": f"{_STAGES}.train_shared:TrainShared",
        "teacher": f"{_STAGES}.fine_tune:FineTune",
        "scores": f"{_STAGES}.score_parts:ScoreParts",
        "latency": f"{_STAGES}.score_parts:MeasureParts",
        "space": f"{_STAGES}.draw_space:DrawSpace",
        "menu": f"{_STAGES}.draw_menu:DrawMenu",
        "multiples": f"{_STAGES}.draw_multiples:DrawMultiples",
        "search": f"{_STAGES}.search:Search",
        "deliver": f"{_STAGES}.deliver:Deliver",
        "source": f"{_STAGES}.blocks_source:LoadTeacher",
        "operation-times": f"{_STAGES}.blocks_source:MeasureOperations",
        "bases": f"{_STAGES}.blocks_train:FitBases",
        "blocks": f"{_STAGES}.blocks_train:TrainBlocks",
        "choices": f"{_STAGES}.blocks_choose:ChooseChains",
        "students": f"{_STAGES}.blocks_students:TeachStudents",
        "train": f"{_STAGES}.train_model:TrainModel",
    },
    "formwright.stages",
)


class Stage(Part):
    """Base class of stages, pieces of work that leave one artifact each; fields that hold stages are its inputs.

    A stage is a frozen dataclass. `resolved` settles what the user left open, `check` refuses before anything is
    written, `make` does the work (again and again until it is done, after whatever interruption), `load` gives what
    was made as an object. `formwright.pipeline.runner` calls them.
    """

    @classmethod
    def registry(cls) -> Registry[Any]:
        return STAGES

    def resolved(self, run: Any) -> Self:
        """Give the stage with every option settled that depends on data, model or machine."""
        return self

    def check(self, run: Any) -> None:
        """Refuse, before anything is written, what could not be done."""

    def contents(self, run: Any) -> Mapping[str, Any]:
        """Give digests of what the stage reads from outside, by name: a file may change and keep its name."""
        return {}

    def make(self, run: Any) -> None:
        """Do the work, writing into the folder of the stage; called again after an interruption."""
        raise NotImplementedError(f"{type(self).__name__}.make")

    def reaches(self, run: Any) -> bool:
        """Tell whether what was made goes as far as the extents ask; if not, `make` is called to add to it."""
        return True

    def summary(self, run: Any) -> Any:
        """Say what came out, as a `formwright.pipeline.conclusion.Summary`; None where there is nothing to say."""
        return None

    def forecast(self, run: Any) -> Any:
        """Estimate time, disk and costs before the run, as a `formwright.pipeline.forecast.Forecast`; None: unknown."""
        return None

    def models(self, run: Any) -> Sequence[Any]:
        """List what the stage delivered, as `formwright.pipeline.delivered.Delivered`; `Result.models` gathers them."""
        return ()

    def load(self, run: Any) -> Any:
        """Give the artifact as an object; by default the folder that holds it."""
        return run.folder

    def page_facts(self, run: Any) -> Any:
        """Give what the panels of this stage show, from the files of the run; None where there is nothing yet."""
        return None


def inputs_of(part: Any) -> tuple[Stage, ...]:
    """List the stages that a part reads from, also those that the parts in its fields name."""
    found: dict[int, Stage] = {}
    for one in dataclasses.fields(part):
        value = getattr(part, one.name)
        if isinstance(value, Stage):
            found[id(value)] = value
        elif isinstance(value, Part) and hasattr(value, "__dataclass_fields__"):
            found |= {id(stage): stage for stage in inputs_of(value)}
    return tuple(found.values())


def with_inputs(part: T, known: Mapping[int, Stage]) -> T:
    """Give a part whose stages are replaced by those known under their identity."""
    changes: dict[str, Any] = {}
    for one in dataclasses.fields(part):  # type: ignore[arg-type]
        value = getattr(part, one.name)
        if isinstance(value, Stage) and id(value) in known:
            changes[one.name] = known[id(value)]
        elif isinstance(value, Part) and not isinstance(value, Stage) and hasattr(value, "__dataclass_fields__"):
            changes[one.name] = with_inputs(value, known)
    return dataclasses.replace(part, **changes) if changes else part  # type: ignore[type-var]


def set_option(data: dict[str, Json], path: Sequence[str], value: Json) -> None:
    """Set one option in the JSON of a part, where a part may be written as its name alone."""
    name, *rest = path
    if not rest:
        data[name] = value
        return
    inner = data.get(name)
    if isinstance(inner, str):
        inner = {"name": inner}
    data[name] = dict(inner) if isinstance(inner, Mapping) else {}
    set_option(data[name], rest, value)


def with_options(
    part: Any, settings: Sequence[tuple[Sequence[str], Json]], reader: PartReader, writer: PartWriter, where: str
) -> Any:
    """Give a part with options set by their paths; every setting that is wrong becomes a fault of the reader.

    Options that are not set stay as they are, also where they hold objects of Python.
    """
    hints, data = hints_of(type(part)), dict[str, Json]()
    known = [one.name for one in dataclasses.fields(part) if one.init]
    for path, value in settings:
        if path[0] in known:
            data.setdefault(path[0], writer.value(getattr(part, path[0])))
            set_option(data, path, value)
        else:
            reader.fault(at(where, path[0]), str(UnknownName("option", path[0], known)))
    values = {name: reader.read(hints[name], value, at(where, name)) for name, value in data.items()}
    return reader.build(partial(dataclasses.replace, part), values, where)


def read_set(text: str, parse: Callable[[str], Json]) -> tuple[list[str], Json]:
    """Read `part.option=value` into the path and the value."""
    path, equals, value = text.partition("=")
    words = [word.strip().replace("-", "_") for word in path.split(".")]
    if not equals or not all(words):
        raise IllegalInput(f"--set takes PART.OPTION=VALUE, such as searcher.population=40, not {text!r}")
    return words, parse(value)


def _is_stage(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Stage)
