"""Panels: what a page is made of. Stages, searchers and other parts name the panels that they contribute.

A part names its panels in the class attribute `PANELS`, so that it need not import this package. Packages add panels by
entry points in the group `formwright.panels`. A page can be written where the package of a part is not installed: its
panels are then left out, and a note says so.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

from formwright.core.codec import hints_of
from formwright.core.errors import FormwrightError
from formwright.core.options import Part, Stage
from formwright.core.registry import Registry

_HERE = "formwright.report"
PLOTS = "<!-- plots -->"  # where panels among the plots stand


@dataclass(frozen=True)
class Panel:
    """One part of a page.

    `html` writes it from the facts of its `source`: `RunFacts` of the run, `StudyFacts` of its search, or what
    `page_facts` of the stage gives that contributes the panel. Text that is not `Markup` is escaped, and empty text
    leaves the panel out. With a `title` it becomes a section of the page, or else it brings its own elements. `place`
    is the page itself, or the column of plots next to the chosen design. Panels stand in the order of their `rank`.

    `script` is the body of a function, in which what `data` gives is called `data`; it shares nothing with others. A
    page may show several searches: `byId(name)` and `root` find the elements of the search that a script belongs to.
    """

    html: Callable[[Any], str]
    title: str = ""
    source: Literal["run", "study", "stage"] = "study"
    rank: int = 50
    place: Literal["page", "plots"] = "page"
    data: Callable[[Any], Any] | None = None
    script: str = ""
    style: str = ""
    plotly: bool = False


PANELS: Registry[Panel] = Registry(
    "panel",
    {
        "head": f"{_HERE}.page_head:HEAD",
        "run-head": f"{_HERE}.page_pipeline:HEAD",
        "pipeline": f"{_HERE}.page_pipeline:PIPELINE",
        "training": f"{_HERE}.page_training:TRAINING",
        "targets": f"{_HERE}.page_compression:TARGETS",
        "best": f"{_HERE}.page_head:BEST",
        "space": f"{_HERE}.page_compression:SPACE",
        "chosen-widths": f"{_HERE}.page_compression:CHOSEN",
        "formulas": f"{_HERE}.page_formulas:FORMULAS",
        "population": f"{_HERE}.page_formulas:POPULATION",
        "operations": f"{_HERE}.page_formulas:OPERATIONS",
        "block-sizes": f"{_HERE}.page_blocks:SIZES",
        "block-models": f"{_HERE}.page_blocks:MODELS",
        "trials": f"{_HERE}.page_trials:TRIALS",
        "map": f"{_HERE}.page_search:MAP",
        "predictions": f"{_HERE}.page_search:PREDICTIONS",
        "importance": f"{_HERE}.page_search:IMPORTANCE",
        "failures": f"{_HERE}.page_search:FAILURES",
        "ledger": f"{_HERE}.page_search:LEDGER",
        "configuration": f"{_HERE}.page_pipeline:CONFIGURATION",
        "footer": f"{_HERE}.page_pipeline:FOOTER",
    },
    "formwright.panels",
    Panel,
)
EVERY_RUN = ("pipeline", "configuration", "footer")
# those of formulas follow from the designs, whatever searches for them
EVERY_SEARCH = (
    *("head", "best", "formulas", "population", "operations", "trials", "map", "predictions"),
    *("importance", "failures", "ledger"),
)


@dataclass(frozen=True)
class UsedPart:
    """A stage, or a part in its options, as the configuration of a run names it.

    `kind` is its class, or what else its registry holds; None where that cannot be loaded, for the reason `problem`.
    `inputs` are the stages that its own options name.
    """

    stage: str
    name: str
    kind: Any = None
    problem: str = ""
    inputs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Contributions:
    """The panels that a run's parts contribute, with the stages that they belong to, and why others are missing."""

    panels: Mapping[str, str] = field(default_factory=dict, hash=False)
    missing: tuple[str, ...] = ()


def contributions(used: Sequence[UsedPart]) -> Contributions:
    """Collect the panels of stages and parts in their order."""
    panels: dict[str, str] = {}
    for part in used:
        for name in getattr(part.kind, "PANELS", ()):
            panels.setdefault(name, part.stage)
    return Contributions(panels, tuple(dict.fromkeys(part.problem for part in used if part.problem)))


def stages_in(config: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Give the options of each stage by its name, as the JSON of a pipeline has them."""
    stages = config.get("stages")
    pairs = stages.items() if isinstance(stages, Mapping) else ()
    return {str(name): options for name, options in pairs if isinstance(options, Mapping)}


def parts_in(config: Mapping[str, Any], at_hand: Mapping[str, Any] | None = None) -> list[UsedPart]:
    """List the stages of a pipeline and the parts in their options.

    Classes that a program gave are found `at_hand` by their names; no code of a run is imported.
    """
    found: list[UsedPart] = []
    stages = stages_in(config)
    for stage, options in stages.items():
        if isinstance(options.get("stage"), str):
            reading = _Reading(stage, tuple(stages), at_hand or {})
            found += reading.parts(Stage.registry(), options["stage"], options)
    return found


@dataclass(frozen=True)
class _Reading:
    stage: str
    stages: tuple[str, ...]
    at_hand: Mapping[str, Any]

    def parts(self, registry: Registry[Any], name: str, options: Mapping[str, Any]) -> Iterator[UsedPart]:
        try:
            kind = self.at_hand[name] if name in self.at_hand else registry.get(name)
        except FormwrightError as error:
            yield UsedPart(self.stage, name, problem=str(error))
            return
        hints = hints_of(kind) if isinstance(kind, type) and issubclass(kind, Part) else {}
        kinds = {option: _kinds(hints.get(option)) for option in options}
        named = [options[option] for option, found in kinds.items() if any(issubclass(one, Stage) for one in found)]
        yield UsedPart(self.stage, name, kind, inputs=tuple(one for one in self.stages if one in named))
        for option, value in options.items():
            inner = next((one for one in kinds[option] if issubclass(one, Part) and not issubclass(one, Stage)), None)
            given = {"name": value} if isinstance(value, str) else value
            if inner is not None and isinstance(given, Mapping):
                own = given.get("python")  # an object of Python is not looked for in a registry
                known = own if isinstance(own, str) and own in self.at_hand else given.get("name")
                if isinstance(known, str):
                    yield from self.parts(inner.registry(), known, given)


def _kinds(hint: Any) -> list[type[Any]]:
    members = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    return [member for member in members if isinstance(member, type)]


@dataclass(frozen=True)
class StageFacts:
    """A stage of a run: its name, the stages that it reads from, and whether it is done."""

    name: str
    inputs: tuple[str, ...] = ()
    done: bool = False


@dataclass(frozen=True)
class RunFacts:
    """A run: the JSON of its pipeline, its stages, and the command lines that started it."""

    name: str
    config: Mapping[str, Any] = field(default_factory=dict, hash=False)
    stages: tuple[StageFacts, ...] = ()
    command: str = ""
    as_of: float | None = None
    over: bool = False

    @property
    def recipe(self) -> str:
        """Name the published method that composed the run; empty if none did."""
        return str(self.config.get("recipe") or "")


def stage_facts(config: Mapping[str, Any], used: Collection[UsedPart], done: Collection[str]) -> tuple[StageFacts, ...]:
    """List the stages of a pipeline; `done` names those that are done."""
    read = {name: [one for part in used if part.stage == name for one in part.inputs] for name in stages_in(config)}
    return tuple(StageFacts(name, tuple(dict.fromkeys(inputs)), name in done) for name, inputs in read.items())
