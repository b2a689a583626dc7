"""Statistics of a study that searches formulas: its population over time, and scores of operations."""

from bisect import insort
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from formwright.arch.card import Card
from formwright.arch.graph import has_formulas
from formwright.core.records import Objective, Trial
from formwright.report.panels import UsedPart
from formwright.search.op_nas import ALPHA, OperationTable, OpNas, operation_scores
from formwright.search.scores import best_first, goals_of, longest, score
from formwright.space.space import Space


@dataclass(frozen=True)
class Lifespan:
    """A trial that was among the best: its score, and the trial that pushed it out, None while it lives.

    `parent` is the number of the trial that it descends from.
    """

    number: int
    score: float
    ends: int | None = None
    parent: int | None = None


@dataclass(frozen=True)
class Population:
    """Lifespans of the trials that were ever among the best `most`, and number and score of all others."""

    most: int
    lives: tuple[Lifespan, ...] = ()
    others: tuple[tuple[int, float], ...] = ()

    @property
    def last(self) -> int:
        """Return the number of the last trial."""
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
        tuple(Lifespan(trial.number, _score(trial, goal), ends[trial.number], trial.request.parent) for trial in lived),
        tuple((trial.number, _score(trial, goal)) for trial in trials if ends[trial.number] == trial.number),
    )


def _score(trial: Trial, goal: str) -> float:
    assert trial.observation is not None, "only finished trials live"
    return trial.observation.metrics[goal]


@dataclass(frozen=True)
class FormulaStatistics:
    """Who lived when, and how each operation did at each place of the formulas.

    `breeds` tells whether the search gives children to the best so far, `guided` whether it draws operations by their
    scores. Other searches have the same figures, which then only look back.
    """

    population: Population
    operations: OperationTable
    breeds: bool = False
    guided: bool = False


@dataclass(frozen=True)
class OwnWords:
    """What a searcher says of itself: how many designs are parents at a time, and how it rates operations.

    `rates` tells whether it breeds and draws operations by their scores (`RATES_OPERATIONS` of its class); `guided` and
    `alpha` are then its options.
    """

    parents: int
    rates: bool = False
    guided: bool = False
    alpha: float = ALPHA


def own_words(config: Mapping[str, Any], used: Sequence[UsedPart]) -> OwnWords:
    """Read what a study's searcher says of itself: its options, or else their defaults for the budget."""
    given, stop = config.get("searcher"), config.get("stop")
    options = given if isinstance(given, Mapping) else {"name": given}
    kind = next((part.kind for part in used if part.name == options.get("name")), None)
    trials = stop.get("trials") if isinstance(stop, Mapping) else None
    usual = OpNas.for_budget(trials, None)["parents"]
    if not getattr(kind, "RATES_OPERATIONS", False):
        return OwnWords(usual)
    parents: int = options.get("parents") or usual
    alpha: Any = options.get("alpha", ALPHA)
    return OwnWords(parents, rates=True, guided=bool(options.get("guided", True)), alpha=alpha)


def formula_statistics(
    space: Space,
    trials: Sequence[Trial],
    objectives: Sequence[Objective],
    config: Mapping[str, Any],
    used: Sequence[UsedPart],
) -> FormulaStatistics | None:
    """Compute the statistics from finished trials of the largest budget; None if no design has a formula."""
    known = [trial for trial in longest(trials) if trial.request.design is not None]
    if not any(has_formulas(card) for trial in known if isinstance(card := trial.request.card, Card)):
        return None
    own = own_words(config, used)
    operations = operation_scores(space, known, objectives, own.alpha)
    return FormulaStatistics(population(known, objectives, own.parents), operations, own.rates, own.guided)
