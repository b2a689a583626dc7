"""What a study that searches formulas has found out about them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from formwright.arch.card import Card
from formwright.arch.plain import has_formulas
from formwright.core.records import Objective, Trial
from formwright.report.population import Population, parents_of, population
from formwright.search.fronts import longest
from formwright.search.options import not_negative
from formwright.search.priorities import ALPHA, OperationTable, operation_scores
from formwright.space.space import Space


@dataclass(frozen=True)
class Invention:
    """Who lived when, and how each operation did at each place of the formulas.

    `breeds` tells whether the search gives children to the best so far, `guided` whether it draws operations by their
    scores. Other searches have the same figures, which then only look back.
    """

    population: Population
    operations: OperationTable
    breeds: bool = False
    guided: bool = False


def invention(
    space: Space, trials: Sequence[Trial], objectives: Sequence[Objective], config: Mapping[str, Any]
) -> Invention | None:
    """Read it from finished trials of the largest budget; None where no design has a formula."""
    known = [trial for trial in longest(trials) if trial.request.design is not None]
    if not any(has_formulas(card) for trial in known if isinstance(card := trial.request.card, Card)):
        return None
    breeds, options = _search(config)
    alpha = options.get("alpha", ALPHA) if breeds else ALPHA  # which means something else in other searches
    return Invention(
        population(known, objectives, parents_of(config)),
        operation_scores(space, known, objectives, ALPHA if not_negative(alpha=alpha) else alpha),
        breeds,
        breeds and options.get("guided", True) is True,
    )


def _search(config: Mapping[str, Any]) -> tuple[bool, Mapping[str, Any]]:
    """Tell whether a study is one of the operation-priority search, and which options it has."""
    searcher = config.get("searcher")
    if not isinstance(searcher, Mapping):
        return False, {}
    options = searcher.get("options")
    return searcher.get("name") == "op-nas", options if isinstance(options, Mapping) else {}
