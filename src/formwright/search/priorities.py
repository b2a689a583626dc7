"""Priorities of operations and options: upper confidence bounds on how well designs that have them did.

Equation 3 of AutoBERT-Zero (Gao et al., 2022): u = mean + alpha sqrt(2 log N / n), where the mean is over the scores
of all that had the operation at its place, n is how many they were and N how many had any operation there. Scores are
standardised over the trials, for the softmax over the bounds hardly tells raw accuracies apart. Alpha is in the unit of
raw scores, as in the paper, and divided by the same number as they are: the order of the bounds is the equation's. What
has never been tried counts as tried once, with the best mean of its place.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from formwright.arch.primitives import BINARY, UNARY
from formwright.core.records import Objective, Trial
from formwright.search.scores import score
from formwright.search.targets import targets
from formwright.space import Space
from formwright.space.gene import Gene
from formwright.space.term_gene import TermGene

Floats = NDArray[np.float64]
OPERATIONS = (*UNARY, *BINARY)
ALPHA = 0.01  # the paper's confidence value c
_EQUAL = 1e-9  # scores that differ by a smaller share of themselves differ by rounding


@dataclass(frozen=True, eq=False)
class OperationTable:
    """Hold the score and the count of each operation (column) at each place (row) in the order of computation.

    There are as many rows as the longest term had operations. Operations that were never at a place have a count of 0
    there, and the score that speaks for trying them.
    """

    operations: tuple[str, ...]
    scores: Floats  # (places, operations)
    counts: NDArray[np.int64]  # (places, operations)


@dataclass(frozen=True, eq=False)
class Priorities:
    """Know the scores of all trials that had an operation at a place of a term, or an option in a gene.

    A place of a term is the same in all terms of a design: the length of terms changes, so that there is one
    distribution for each place up to the longest. Other genes have one of their own each. Without trials nothing is
    preferred. `alpha` is in the unit of the scores seen.
    """

    seen: dict[Hashable, dict[Any, list[float]]]
    alpha: float = ALPHA

    @classmethod
    def of(cls, space: Space, trials: Sequence[Trial], objectives: Sequence[Objective], alpha: float) -> Priorities:
        """Read the priorities from finished trials of the space; `alpha` is in the unit of their first goal.

        Where several goals or broken limits let only the order of trials count, it is in standard deviations.
        """
        seen: dict[Hashable, dict[Any, list[float]]] = defaultdict(lambda: defaultdict(list))
        for trial, target in zip(trials, targets(trials, objectives).tolist(), strict=True):
            for gene in space.genes(trial.request.design):
                for place, option in _taken(gene):
                    seen[place][option].append(target)
        return cls(seen, alpha / _unit(trials, objectives))

    @property
    def places(self) -> int:
        """Count the places of terms that were seen."""
        return sum(1 for place in self.seen if isinstance(place, int))

    def of_operations(self, place: int) -> Floats:
        """Return the score of each operation at a place."""
        return self._scores(place, OPERATIONS)

    def of_options(self, gene: Gene, options: Sequence[Any]) -> Floats:
        """Return the score of each option of a gene."""
        return self._scores(gene.path, options)

    def _scores(self, place: Hashable, options: Sequence[Any]) -> Floats:
        seen = self.seen.get(place, {})
        scores = [seen.get(option, []) for option in options]
        means = [float(np.mean(found)) if found else None for found in scores]
        best = max((mean for mean in means if mean is not None), default=0.0)
        return upper_bounds([best if mean is None else mean for mean in means], list(map(len, scores)), self.alpha)


def upper_bounds(means: Sequence[float], counts: Sequence[int], alpha: float) -> Floats:
    """Return the upper confidence bound of each mean; a count of 0 is taken for 1."""
    number = max(1, sum(counts))
    tried = np.maximum(1, np.asarray(counts, dtype=np.float64))
    bounds: Floats = np.asarray(means, dtype=np.float64) + alpha * np.sqrt(2.0 * np.log(number) / tried)
    return bounds


def draw_order(scores: Floats, rng: Generator) -> list[int]:
    """Draw all indices without replacement, each time from the softmax of the scores that are left."""
    # the largest of scores with Gumbel noise is a draw from their softmax, the next one a draw from the rest
    noisy = scores + rng.gumbel(size=len(scores))
    return [int(index) for index in np.argsort(-noisy, kind="stable")]


def operation_scores(
    space: Space, trials: Sequence[Trial], objectives: Sequence[Objective], alpha: float = ALPHA
) -> OperationTable:
    """Tell how each operation did at each place in the terms of finished trials whose designs are known."""
    finished = [trial for trial in trials if trial.state == "finished" and trial.request.design is not None]
    priorities = Priorities.of(space, finished, objectives, alpha)
    counts = np.array(
        [[len(priorities.seen[place].get(name, ())) for name in OPERATIONS] for place in range(priorities.places)],
        dtype=np.int64,
    ).reshape(-1, len(OPERATIONS))
    scores = [priorities.of_operations(place) for place in range(priorities.places)]
    return OperationTable(OPERATIONS, np.array(scores).reshape(counts.shape), counts)


def _unit(trials: Sequence[Trial], objectives: Sequence[Objective]) -> float:
    """Return what scores were divided by to be standardised; 1 where all are equal, or only their order counts."""
    scores = score(trials, objectives)
    if scores.values.shape[1] > 1 or scores.violations.any() or not len(trials):
        return 1.0
    spread = float(scores.values.std())
    return spread if spread > _EQUAL * float(np.abs(scores.values).max()) else 1.0


def _taken(gene: Gene) -> Iterator[tuple[Hashable, Any]]:
    """List what a gene holds, by the place whose scores it adds to."""
    if isinstance(gene, TermGene):
        yield from enumerate(gene.operations)
    elif not gene.structural:
        yield gene.path, gene.value
