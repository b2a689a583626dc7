"""Parts and their options: the fields of a frozen dataclass, read from JSON, YAML or the command line and written back.

A part (a searcher, an evaluator, a stage, ...) is a frozen dataclass. Its fields are its options: there is no second
list of them anywhere. In JSON a part is its name, or an object with its `name` and the options that differ from their
defaults. Fields may hold numbers, text, lists, mappings, other dataclasses and other parts. A field of the type of a
stage holds another stage, and is written as the name of that stage.
"""

import dataclasses
import hashlib
import math
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from numbers import Real
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar, Union, get_args, get_origin, get_type_hints

from formwright.core.errors import Fault, IllegalDesign, IllegalInput, nearest
from formwright.core.protocols import Space
from formwright.core.registry import Registry

T = TypeVar("T")
Json = Any
_BAD = object()
_WORDS = {int: "a whole number", bool: "true or false", str: "text", float: "a number"}


class Part:
    """Be the base of a kind of part: each kind knows its registry, each part its name there.

    `PANELS` names what the part contributes to the page of a run (`formwright.report.panels`).
    """

    NAME: ClassVar[str] = ""
    PANELS: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def registry(cls) -> Registry[Any]:
        """Give the registry of this kind of part."""
        raise TypeError(f"{cls.__name__} belongs to no kind of part")

    @classmethod
    def read_options(cls, data: Mapping[str, Json], reader: "Reader", where: str) -> Any:
        """Build this part from its options."""
        return reader.record(cls, data, where)

    def write_options(self, writer: "Writer") -> dict[str, Json]:
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
    metadata = {"about": about, "extent": extent, "least": least, "most": most}
    if isinstance(default, dict | list):
        return field(default_factory=lambda: type(default)(default), metadata=metadata, hash=False)
    return field(default=default, metadata=metadata, hash=None if hashed else False)


@dataclass(frozen=True)
class Option:
    """Describe one option of a part, as lists and help texts show it."""

    name: str
    type: str
    default: str
    about: str = ""


def options_of(kind: type[Any], without: Sequence[str] = ()) -> list[Option]:
    """List the options of a part with their types and defaults."""
    hints = hints_of(kind)
    return [
        Option(one.name, type_words(hints[one.name]), _default_words(one), one.metadata.get("about", ""))
        for one in dataclasses.fields(kind)
        if one.init and one.name not in without
    ]


def nested_options(kind: type[Any], without: Sequence[str] = ()) -> list[Option]:
    """List the options of a part by their paths, such as `training.steps`; other parts in its fields stay closed."""
    found, hints = [], hints_of(kind)
    known = {one.name: one for one in dataclasses.fields(kind)}
    for one in options_of(kind, without):
        inner = [hint for hint in (hints[one.name], *get_args(hints[one.name])) if _is_group(hint)]
        if not inner:
            found.append(one)
            continue
        default = known[one.name].default
        for option_within in nested_options(inner[0]):
            value = option_within.default
            if isinstance(default, inner[0]) and "." not in option_within.name:
                value = _value_words(getattr(default, option_within.name))
            found.append(dataclasses.replace(option_within, name=f"{one.name}.{option_within.name}", default=value))
    return found


def _is_group(kind: Any) -> bool:
    return isinstance(kind, type) and dataclasses.is_dataclass(kind) and not issubclass(kind, Part)


# the types of a dataclass' fields
hints_of: Callable[[Any], dict[str, Any]] = lru_cache(maxsize=512)(partial(get_type_hints, include_extras=True))


def type_words(kind: Any) -> str:
    """Write a type as a help text shows it."""
    origin, members = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return type_words(members[0])
    if origin is Literal:
        return " | ".join(map(str, members))
    if origin in (Union, types.UnionType):
        return " | ".join(type_words(member) for member in members)
    if origin is tuple or origin in (list, Sequence):
        return f"list of {type_words(members[0])}"
    if kind is type(None):
        return "null"
    if origin is Callable:
        return "function"
    return getattr(kind, "__name__", str(kind)) if origin is None else "mapping"


def _default_words(one: "dataclasses.Field[Any]") -> str:
    if one.default is not dataclasses.MISSING:
        value = one.default
    elif one.default_factory is not dataclasses.MISSING:
        value = one.default_factory()
    else:
        return "required"
    return _value_words(value)


def _value_words(value: Any) -> str:
    if isinstance(value, Part):
        return value.NAME
    if isinstance(value, tuple | list):
        return "none" if not value else ", ".join(map(str, value))
    return "null" if value is None else str(value) if not dataclasses.is_dataclass(value) else type(value).__name__


class Writer:
    """Write parts as JSON; `names` are those of stages, by identity, and extents are left out on request."""

    def __init__(self, names: Mapping[int, str] | None = None, *, extents: bool = True, whole: bool = False) -> None:
        self._names, self._extents, self._whole = names or {}, extents, whole

    def value(self, value: Any) -> Json:
        if id(value) in self._names:
            return self._names[id(value)]
        if isinstance(value, PythonObject):
            return {"python": value.source}
        if isinstance(value, Part):
            return {"name": value.NAME, **value.write_options(self)}
        if isinstance(value, Space):
            return {"python": describe(value)}
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return self.record(value)
        if isinstance(value, Mapping):
            return {str(name): self.value(item) for name, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(item) for item in value]
        if value is None or isinstance(value, bool | int | float | str):
            return value
        return {"python": describe(value)}

    def record(self, value: Any) -> dict[str, Json]:
        """Write the fields of a dataclass, leaving out those that equal their default unless all are wanted."""
        found: dict[str, Json] = {}
        for one in dataclasses.fields(value):
            if not one.init or (one.metadata.get("extent") and not self._extents):
                continue
            item = getattr(value, one.name)
            if self._whole or not _is_default(one, item):
                found[one.name] = self.value(item)
        return found


def _is_default(one: "dataclasses.Field[Any]", item: Any) -> bool:
    if one.default is not dataclasses.MISSING:
        return type(item) is type(one.default) and bool(item == one.default)
    return one.default_factory is not dataclasses.MISSING and bool(item == one.default_factory())


def describe(value: Any) -> str:
    """Name an object of Python that JSON cannot hold, such as a function or a space of the user's own."""
    name = getattr(value, "__qualname__", None) or getattr(value, "name", None) or type(value).__qualname__
    if isinstance(value, Space):  # told apart by content: two spaces of one name are not the same run
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


class Reader:
    """Read parts from JSON, collecting every fault; `stages` are those that fields may name."""

    def __init__(self, stages: Mapping[str, Any] | None = None) -> None:
        self.stages: dict[str, Any] = dict(stages or {})
        self.faults: list[Fault] = []

    def read(self, kind: Any, data: Json, where: str = "") -> Any:
        """Read a value of a type; what cannot be read becomes a fault."""
        origin, members = get_origin(kind), get_args(kind)
        if isinstance(data, Mapping) and data.keys() == {"python"}:
            return PythonObject(str(data["python"]))
        if kind is Any:
            return data
        if origin is Annotated:
            return self.read(members[0], data, where)
        if origin in (Union, types.UnionType):
            return self._union(members, data, where)
        if origin is Literal:
            return data if data in members else self.fault(where, f"is {data!r}; allowed: {_list(members)}")
        if origin in (tuple, list, Sequence):
            return self._list(members[0] if members else Any, data, where)
        if origin is not None and issubclass(origin, Mapping):
            return self._mapping(members[1] if members else Any, data, where)
        if isinstance(kind, type) and issubclass(kind, Part):
            return self._part(kind, data, where)
        if dataclasses.is_dataclass(kind):
            return self.record(kind, data, where)
        return self._plain(kind, data, where)

    def record(self, kind: Any, data: Json, where: str) -> Any:
        if not isinstance(data, Mapping):
            return self.fault(where, f"must be an object, not {data!r}")
        hints, known = hints_of(kind), {one.name: one for one in dataclasses.fields(kind) if one.init}
        for name in [name for name in data if name not in known]:
            close = nearest(str(name), known)
            hint = f"; nearest: {close[0]!r}" if close else f"; there are {_list(known) or 'none'}"
            self.fault(_at(where, str(name)), f"is no option{hint}")
        values = {}
        for name, one in known.items():
            if name in data:
                values[name] = self.read(hints[name], data[name], _at(where, name))
            elif one.default is dataclasses.MISSING and one.default_factory is dataclasses.MISSING:
                values[name] = self.fault(_at(where, name), "is missing")
        if any(value is _BAD for value in values.values()):
            return _BAD
        try:
            return kind(**values)
        except (IllegalInput, IllegalDesign) as error:
            return self.fault(where, str(error))

    def fault(self, where: str, what: str) -> Any:
        """Record what is wrong, and where."""
        self.faults.append(Fault(where or "the whole", what))
        return _BAD

    def finished(self, value: T, what: str) -> T:
        """Give what was read; raise `IllegalDesign` that lists every fault."""
        if self.faults:
            raise IllegalDesign(self.faults, what=what)
        return value

    def _union(self, kinds: Sequence[Any], data: Json, where: str) -> Any:
        if data is None and type(None) in kinds:
            return None
        members = [kind for kind in kinds if kind is not type(None)]
        if isinstance(data, str) and data in self.stages and any(map(_is_stage, members)):
            return self.stages[data]
        for plain in (bool, int, float, str):
            if plain in members and (type(data) is plain or (plain is float and type(data) is int)):
                return self.read(plain, data, where)
        others = [kind for kind in members if kind not in _WORDS] or members
        return self.read(others[0] if not isinstance(data, str) else others[-1], data, where)

    def _part(self, kind: type[Part], data: Json, where: str) -> Any:
        if _is_stage(kind):
            return self._stage(data, where)
        name, options = (data, {}) if isinstance(data, str) else _named(data)
        if name is None:
            return self.fault(where, f"must be a name, or an object with a name, not {data!r}")
        try:
            found = kind.registry().get(name)
        except LookupError as error:
            return self.fault(where, str(error))
        reading = getattr(found, "read_options", None)
        if reading is None:
            return kind.read_options({"name": name, **options}, self, where)
        return reading(options, self, where)

    def _stage(self, data: Json, where: str) -> Any:
        if isinstance(data, str) and data in self.stages:
            return self.stages[data]
        close = nearest(str(data), self.stages)
        hint = f" Nearest: {close[0]!r}." if close else ""
        return self.fault(where, f"must name an earlier stage ({_list(self.stages) or 'none'}), not {data!r}.{hint}")

    def _list(self, kind: Any, data: Json, where: str) -> Any:
        if not isinstance(data, list | tuple):
            return self.fault(where, f"must be a list, not {data!r}")
        items = [self.read(kind, item, f"{where}[{index}]") for index, item in enumerate(data)]
        return _BAD if any(item is _BAD for item in items) else tuple(items)

    def _mapping(self, kind: Any, data: Json, where: str) -> Any:
        if not isinstance(data, Mapping):
            return self.fault(where, f"must be an object, not {data!r}")
        items = {str(name): self.read(kind, item, _at(where, str(name))) for name, item in data.items()}
        return _BAD if any(item is _BAD for item in items.values()) else items

    def _plain(self, kind: Any, data: Json, where: str) -> Any:
        if kind is float and type(data) is int:
            return float(data)
        if kind not in _WORDS:
            return self.fault(where, "cannot be read from a file")
        # bool is an int to isinstance, and must not pass for one
        return data if type(data) is kind else self.fault(where, f"must be {_WORDS[kind]}, not {data!r}")


class Stage(Part):
    """Be one piece of work that leaves one artifact; its fields that hold stages are its inputs.

    A stage is a frozen dataclass. `resolved` settles what the user left open, `check` refuses before anything is
    written, `make` does the work (again and again until it is done, after whatever interruption), `load` gives what
    was made as an object. `formwright.pipeline.runner` calls them.
    """

    @classmethod
    def registry(cls) -> Registry[Any]:
        """Give the registry of stages."""
        from formwright.core.registries import STAGES  # noqa: PLC0415

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
        raise TypeError(f"{type(self).__name__} cannot be made")

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


def range_faults(part: Any, where: str) -> list[Fault]:
    """List the numbers of a part, and of the parts and values in its fields, that are not finite or out of range."""
    found: list[Fault] = []
    for one in dataclasses.fields(part):
        value, at, hint = getattr(part, one.name), _at(where, one.name), hints_of(type(part))[one.name]
        # groups of options are declared as such; other dataclasses, such as a space, are values of the user's own
        groups = tuple(kind for kind in (hint, *get_args(hint)) if _is_group(kind))
        if isinstance(value, (Part, *groups)) and not isinstance(value, Stage) and dataclasses.is_dataclass(value):
            found += range_faults(value, at)
        least, most = one.metadata.get("least"), one.metadata.get("most")
        if _is_number(hint) and not isinstance(value, Real | PythonObject | None):
            found.append(Fault(at, f"must be a number, not {value!r}"))
        if isinstance(value, bool) or not isinstance(value, int | float) or (least is None and most is None):
            continue
        low, high = -math.inf if least is None else least, math.inf if most is None else most
        if not (math.isfinite(value) and low <= value <= high):
            limits = [f"at {word} {limit:g}" for word, limit in (("least", least), ("most", most)) if limit is not None]
            found.append(Fault(at, f"is {value:g}; it must be {' and '.join(limits)}"))
    return found


def _is_number(hint: Any) -> bool:
    return all(kind in (int, float, type(None)) for kind in get_args(hint) or (hint,))


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


def read_set(text: str, parse: Callable[[str], Json]) -> tuple[list[str], Json]:
    """Read `part.option=value` into the path and the value."""
    path, equals, value = text.partition("=")
    words = [word.strip().replace("-", "_") for word in path.split(".")]
    if not equals or not all(words):
        raise IllegalInput(f"--set takes PART.OPTION=VALUE, such as searcher.population=40, not {text!r}")
    return words, parse(value)


def _is_stage(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Stage)


def _named(data: Json) -> tuple[str | None, dict[str, Json]]:
    if not isinstance(data, Mapping) or not isinstance(data.get("name"), str):
        return None, {}
    return data["name"], {key: value for key, value in data.items() if key != "name"}


def _list(names: Any) -> str:
    return ", ".join(map(str, names))


def _at(where: str, name: str) -> str:
    return f"{where}.{name}" if where else name
