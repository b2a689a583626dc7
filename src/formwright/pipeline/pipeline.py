"""A pipeline: stages in their order, as one value that is plain JSON."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import Any, TypeVar

from formwright.core.checks import folder_name
from formwright.core.codec import Json, canonical
from formwright.core.errors import Fault, IllegalDesign, IllegalInput, UnknownName
from formwright.core.options import PartReader, PartWriter, PythonObject, Stage, inputs_of, with_inputs, with_options

VERSION = 2
_TAKEN = (
    "answers", "branches", "checkpoints", "final", "model", "models", "observers", "plan.json", "report.html",
    "run.json", "runs", "study.db", "weights",
)  # fmt: skip
S = TypeVar("S", bound=Stage)


@dataclass(frozen=True, init=False)
class Pipeline:
    """Stages in the order in which they are made; a stage may read from those before it.

    `recipe` names the published method that composed it, for lists and reports.
    """

    stages: tuple[Stage, ...]
    recipe: str = ""

    def __init__(self, *stages: Stage, recipe: str = "") -> None:
        object.__setattr__(self, "stages", stages)
        object.__setattr__(self, "recipe", recipe)
        if not stages:
            raise IllegalInput("a pipeline has at least one stage")
        before: set[int] = set()
        for stage in stages:
            if not isinstance(stage, Stage):
                raise IllegalInput(f"a pipeline consists of stages, not of {stage!r}; see formwright.pipeline")
            if any(id(one) not in before for one in inputs_of(stage)):
                raise IllegalInput(f"the stage {stage.NAME} reads from a stage that does not stand before it")
            before.add(id(stage))

    @cached_property
    def named(self) -> dict[str, Stage]:
        """Give the stages by name: the name of their kind, with a number where it occurs again."""
        found: dict[str, Stage] = {}
        for stage in self.stages:
            kind = stage.NAME or type(stage).__name__.lower()
            number = sum(name == kind or name.startswith(f"{kind}-") for name in found)
            found[folder_name("a stage", f"{kind}-{number + 1}" if number else kind)] = stage
        return found

    def name_of(self, stage: Stage) -> str:
        return next(name for name, one in self.named.items() if one is stage)

    def of_kind(self, kind: type[S]) -> list[S]:
        return [stage for stage in self.stages if isinstance(stage, kind)]

    def __iter__(self) -> Iterator[Stage]:
        return iter(self.stages)

    def changed(self, changes: Mapping[str, Stage]) -> "Pipeline":
        """Replace stages by name; those that read from them read from the new ones."""
        known: dict[int, Stage] = {}
        stages = []
        for name, stage in self.named.items():
            new = with_inputs(changes.get(name, stage), known)
            known |= {id(stage): new, id(changes.get(name, stage)): new}
            stages.append(new)
        made = Pipeline(*stages, recipe=self.recipe)
        made.__dict__["named"] = dict(zip(self.named, stages, strict=True))  # a file may have given them names
        return made

    def to_json(self, *, extents: bool = True, whole: bool = False) -> dict[str, Json]:
        """Give plain JSON data; without `extents`, what only says how far a run goes is left out."""
        writer = PartWriter({id(stage): name for name, stage in self.named.items()}, extents=extents, whole=whole)
        stages = {name: {"stage": stage.NAME, **stage.write_options(writer)} for name, stage in self.named.items()}
        return {"version": VERSION, "recipe": self.recipe, "stages": stages}

    @classmethod
    def from_json(cls, data: Any) -> "Pipeline":
        """Read what `to_json` gave, or a file of a user; raise `IllegalDesign` that lists every fault."""
        if not isinstance(data, Mapping) or not isinstance(data.get("stages"), Mapping) or not data["stages"]:
            raise IllegalDesign([Fault("stages", "must be an object with at least one stage")], what="pipeline")
        check_version(data)
        given = {str(name): stage for name, stage in data["stages"].items()}
        reader = _read_stages(given, list(given))
        if reader.faults and (order := _right_order(given)) != list(given):
            again = _read_stages(given, order)
            if len(again.faults) < len(reader.faults):  # the order is to blame for what is gone
                reader = again
                right = ", ".join(order)
                reader.fault("stages", f"a stage reads from those before it; write them in the order {right}")
        for key in data.keys() - {"version", "recipe", "stages"}:
            reader.fault(str(key), "is not an option of a pipeline; there are version, recipe, stages")
        stages = reader.finished(reader.stages, "pipeline")
        made = cls(*stages.values(), recipe=str(data.get("recipe", "")))
        made.__dict__["named"] = dict(stages)  # the names that the file gives them
        return made

    def with_options(self, settings: Sequence[tuple[Sequence[str], Json]]) -> "Pipeline":
        """Set options by paths such as `search.searcher.population` or, where it is unique, `searcher.population`.

        Objects of Python that JSON cannot hold stay as they are unless they are replaced. Raise `IllegalDesign` that
        lists every setting that is wrong.
        """
        reader, by_stage = PartReader(), dict[str, list[tuple[Sequence[str], Json]]]()
        for path, value in settings:
            try:
                name, rest = self._stage_of(path)
            except (UnknownName, IllegalInput) as error:
                reader.fault(".".join(path), str(error))
            else:
                by_stage.setdefault(name, []).append((rest, value))
        writer = PartWriter({id(stage): name for name, stage in self.named.items()})
        changes: dict[str, Stage] = {}
        for name, stage in self.named.items():
            if name in by_stage:
                changes[name] = with_options(stage, by_stage[name], reader, writer, name)
            reader.stages[name] = stage
        return self.changed(reader.finished(changes, "settings")) if settings else self

    def _stage_of(self, path: Sequence[str]) -> tuple[str, Sequence[str]]:
        """Find the stage that a path of an option begins with, or that alone has such an option."""
        names = {name.replace("-", "_"): name for name in self.named}
        if path[0] in names and len(path) > 1:
            return names[path[0]], path[1:]
        owners = [
            name
            for name, stage in self.named.items()
            if path[0] in {one.name for one in fields(stage)}  # type: ignore[arg-type]
        ]
        if len(owners) == 1:
            return owners[0], path
        if not owners:
            known = [one.name for stage in self.stages for one in fields(stage)]  # type: ignore[arg-type]
            raise UnknownName("stage or option of this pipeline", path[0], dict.fromkeys([*self.named, *known]))
        shown = " or ".join(f"{name}.{'.'.join(path)}" for name in owners)
        raise IllegalInput(f"several stages have the option {path[0]!r}: write {shown}")

    def keys(self, contents: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
        """Give the key of each stage: a digest of its options, its inputs' keys and what it reads from outside."""
        found: dict[str, str] = {}
        data = self.to_json(extents=False)["stages"]
        for name, stage in self.named.items():
            inputs = {self.name_of(one): found[self.name_of(one)] for one in inputs_of(stage)}
            facts = {"options": data[name], "inputs": inputs, "contents": dict(contents.get(name, {}))}
            found[name] = hashlib.sha256(canonical(facts).encode()).hexdigest()
        return found


def check_version(data: Mapping[str, Any]) -> None:
    """Refuse the JSON of a pipeline that another version of formwright wrote."""
    if data.get("version", VERSION) != VERSION:
        raise IllegalInput(
            f"this run has version {data['version']!r}; this formwright reads version {VERSION}: update it"
        )


def _read_stages(given: Mapping[str, Any], order: Sequence[str]) -> PartReader:
    reader = PartReader()
    for name in order:
        reader.stages[name] = _read_stage(reader, name, given[name])
    return reader


def _right_order(given: Mapping[str, Any]) -> list[str]:
    """Order stages such that each stands behind those that its options may name; as given where that cannot be."""

    def named(value: Any) -> set[str]:
        if isinstance(value, Mapping | list):
            inner = value.values() if isinstance(value, Mapping) else value
            return {name for one in inner for name in named(one)}
        return {value} if isinstance(value, str) and value in given else set()

    reads = {
        name: named({key: value for key, value in stage.items() if key != "stage"})
        if isinstance(stage, Mapping)
        else set()
        for name, stage in given.items()
    }
    try:
        return [*TopologicalSorter(reads).static_order()]
    except CycleError:
        return list(given)


def _read_stage(reader: PartReader, name: str, given: Any) -> Any:
    if isinstance(given, Mapping) and given.keys() == {"python"}:
        return PythonObject(str(given["python"]))
    if not isinstance(given, Mapping) or not isinstance(given.get("stage"), str):
        return reader.fault(f"stages.{name}", "must be an object with a `stage`, the kind of it")
    if name.lower() in _TAKEN:
        return reader.fault(f"stages.{name}", f"cannot be called {name}: the run keeps a file or folder of that name")
    try:
        folder_name("a stage", name)
        kind = Stage.registry().get(given["stage"])
    except (LookupError, IllegalInput) as error:
        return reader.fault(f"stages.{name}", str(error))
    options = {key: value for key, value in given.items() if key != "stage"}
    return kind.read_options(options, reader, f"stages.{name}")
