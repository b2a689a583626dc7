"""A study: the parts of a search, and the log that is all of its state."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from formwright.arch.card import Card
from formwright.core.protocols import Evaluator, Searcher
from formwright.core.records import History, Objective
from formwright.space.space import Space
from formwright.study.log import Log
from formwright.study.replay import Replay
from formwright.study.stop import Stop

Gate = Callable[[Card], "str | None"]


def _no_gate(_: Card) -> str | None:
    return None


@dataclass(frozen=True)
class Study:
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
        """Read the log and give all trials."""
        replay = Replay(self.space)
        replay.feed(self.log.read())
        return replay.history
