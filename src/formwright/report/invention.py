"""What a study that searches formulas has found out about them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from formwright.arch.card import Card
from formwright.arch.plain import has_formulas
from formwright.core.records import Objective, Trial
from formwright.report.population import Population, parents_of, population
from formwright.search.fronts import longest
from formwright.search.priorities import OperationTable, operation_scores
from formwright.space.space import Space


@dataclass(frozen=True)
class Invention:
    """Who lived when, and how each operation did at each place of the formulas."""

    population: Population
    operations: OperationTable


def invention(
    space: Space, trials: Sequence[Trial], objectives: Sequence[Objective], config: Mapping[str, Any]
) -> Invention | None:
    """Read it from finished trials of the largest budget; None where no design has a formula."""
    known = [trial for trial in longest(trials) if trial.request.design is not None]
    if not any(has_formulas(card) for trial in known if isinstance(card := trial.request.card, Card)):
        return None
    return Invention(population(known, objectives, parents_of(config)), operation_scores(space, known, objectives))
