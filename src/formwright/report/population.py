"""Which designs of an evolution live when: from their birth until better ones have taken their place."""

from bisect import insort
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from formwright.core.records import Objective, Trial
from formwright.search.fronts import best_first
from formwright.search.op_nas import OpNas
from formwright.search.scores import goals_of, score


@dataclass(frozen=True)
class Life:
    """A trial that was among the best: its score, and the trial that pushed it out, None while it lives.

    `parent` is the number of the trial that it descends from.
    """

    number: int
    score: float
    ends: int | None = None
    parent: int | None = None


@dataclass(frozen=True)
class Population:
    """The lives of all trials that were among the best `most` of their time, and number and score of the others."""

    most: int
    lives: tuple[Life, ...] = ()
    others: tuple[tuple[int, float], ...] = ()

    @property
    def last(self) -> int:
        """Give the number of the last trial."""
        return max([*(life.number for life in self.lives), *(number for number, _ in self.others)], default=0)


def population(trials: Sequence[Trial], objectives: Sequence[Objective], most: int) -> Population:
    """Follow finished trials in the order in which they were asked for.

    With several goals, trials are ranked as they are in the end; the score is always the first goal.
    """
    goal = goals_of(objectives)[0].name
    rank = {trials[place].number: turn for turn, place in enumerate(best_first(score(trials, objectives)))}
    alive: list[tuple[int, int]] = []  # rank and number, the best first
    ends: dict[int, int | None] = {}
    for trial in trials:
        insort(alive, (rank[trial.number], trial.number))
        ends[trial.number] = None
        for _, number in alive[most:]:
            ends[number] = trial.number
        del alive[most:]
    lived = [trial for trial in trials if ends[trial.number] != trial.number]
    return Population(
        most,
        tuple(Life(trial.number, _score(trial, goal), ends[trial.number], trial.request.parent) for trial in lived),
        tuple((trial.number, _score(trial, goal)) for trial in trials if ends[trial.number] == trial.number),
    )


def parents_of(config: Mapping[str, Any]) -> int:
    """Tell how many designs at a time have children in a study, or would have by default."""
    searcher, stop = config.get("searcher"), config.get("stop")
    options = searcher.get("options") if isinstance(searcher, Mapping) else None
    given = options.get("parents") if isinstance(options, Mapping) else None
    trials = stop.get("trials") if isinstance(stop, Mapping) else None
    return given if isinstance(given, int) and given > 0 else OpNas.for_budget(trials, None)["parents"]


def _score(trial: Trial, goal: str) -> float:
    assert trial.observation is not None, "only finished trials live"
    return trial.observation.metrics[goal]
