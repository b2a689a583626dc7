"""A study: the parts of a search, the log that is all of its state, and the configuration in it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from formwright.arch.card import Card
from formwright.core.protocols import Evaluator, Searcher
from formwright.core.records import History, Objective
from formwright.space.space import Space
from formwright.study.replay import Replay
from formwright.study.stop import Stop
from formwright.study.store import Log

Gate = Callable[[Card], "str | None"]


def _no_gate(_: Card) -> str | None:
    return None


@dataclass(frozen=True)
class StudySetup:
    """Everything that a worker needs: where to write, what to search, how to judge, and when to stop.

    `gate` says before an evaluation why a card is beyond a limit that has to be measured, or None. The k-th proposal
    depends on the seed, on k and on the log alone.
    """

    log: Log
    space: Space
    searcher: Searcher
    evaluator: Evaluator
    objectives: Sequence[Objective]
    stop: Stop
    folder: Path
    seed: int = 0
    gate: Gate = field(default=_no_gate)
    lease_seconds: float = 60.0
    attempts: int = 3

    def history(self) -> History:
        return Replay.of(self.log.read(), self.space).history


def searched(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Give the options of the study's own stage, and those of the stage that delivers its designs, as one object."""
    stages = config.get("stages")
    if not isinstance(stages, Mapping):
        return config
    name = config.get("stage", "search")
    own = stages.get(name)
    wanted = [one for one in stages.values() if isinstance(one, Mapping) and one.get("stage") == "deliver"]
    delivered = next((one for one in wanted if one.get("search") == name), {})
    names = ("keep", "targets", "steps", "weights", "baseline")
    found = {key: delivered[key] for key in names if key in delivered}
    return {**(own if isinstance(own, Mapping) else {}), **found, "recipe": config.get("recipe", "")}
