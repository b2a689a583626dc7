"""What a page says of the run itself: its recipe, its stages and how far they are."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from formwright import __version__
from formwright.report.panels import UsedPart, stages_in

DONE = "done.json"  # what the runner writes into the folder of a stage that is done


@dataclass(frozen=True)
class StageFacts:
    """A stage of a run: its name, its kind, the stages that it reads from, and whether it is done."""

    name: str
    kind: str
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
    version: str = __version__

    @property
    def recipe(self) -> str:
        """Name the published method that composed the run; empty if none did."""
        return str(self.config.get("recipe") or "")


def stage_facts(config: Mapping[str, Any], used: Collection[UsedPart], done: Collection[str]) -> tuple[StageFacts, ...]:
    """List the stages of a pipeline; `done` names those that are done."""
    found = []
    for name, options in stages_in(config).items():
        inputs = dict.fromkeys(one for part in used if part.stage == name for one in part.inputs)
        found.append(StageFacts(name, str(options.get("stage", "")), tuple(inputs), name in done))
    return tuple(found)
