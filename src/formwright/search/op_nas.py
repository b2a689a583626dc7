"""OP-NAS, the operation-priority search of AutoBERT-Zero (Gao et al., 2022).

Priorities are upper confidence bounds on the scores of designs that have an operation or option. Equation 3 of the
paper: u = mean + alpha sqrt(2 log N / n), where the mean is over the scores of all that had the operation at its
place, n is their number and N the number that had any operation there. Scores are standardised over the trials,
because a softmax over raw accuracies is almost uniform. Alpha is in the unit of raw scores, as in the paper, and
divided by the same number as they are, so the order of the bounds is the equation's. Untried operations count as
tried once, with the best mean at their place.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from formwright.arch.graph import plain_digest
from formwright.arch.primitives import BINARY, INPUTS, UNARY, Term
from formwright.core.errors import IllegalInput
from formwright.core.options import option
from formwright.core.protocols import Design
from formwright.core.records import Budget, History, Objective, Request, Trial
from formwright.search.listing import foreign
from formwright.search.proposals import breeding, first_unseen, random_unseen, warming_up
from formwright.search.scores import best_first, score, targets
from formwright.search.searchers import CheckedSearcher
from formwright.space import Combinator, Space
from formwright.space.design import below
from formwright.space.term_edits import TermGene

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
    """The scores of all trials that had an operation at a place of a term, or an option in a gene.

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
                if isinstance(gene, TermGene):
                    for place, operation in enumerate(gene.operations):
                        seen[place][operation].append(target)
                elif not gene.structural:
                    seen[gene.path][gene.value].append(target)
        return cls(seen, alpha / _unit(trials, objectives))

    @property
    def places(self) -> int:
        return sum(1 for place in self.seen if isinstance(place, int))

    def scores(self, place: Hashable, options: Sequence[Any] = OPERATIONS) -> Floats:
        """Return the upper confidence bound of each operation at a place of terms, or each option in a gene's path."""
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
    """Return how each operation did at each place in the terms of finished trials whose designs are known."""
    finished = [trial for trial in trials if trial.state == "finished" and trial.request.design is not None]
    priorities = Priorities.of(space, finished, objectives, alpha)
    counts = np.array(
        [[len(priorities.seen[place].get(name, ())) for name in OPERATIONS] for place in range(priorities.places)],
        dtype=np.int64,
    ).reshape(-1, len(OPERATIONS))
    scores = [priorities.scores(place) for place in range(priorities.places)]
    return OperationTable(OPERATIONS, np.array(scores).reshape(counts.shape), counts)


def _unit(trials: Sequence[Trial], objectives: Sequence[Objective]) -> float:
    """Return what scores were divided by to be standardised; 1 where all are equal, or only their order counts."""
    scores = score(trials, objectives)
    if scores.values.shape[1] > 1 or scores.violations.any() or not len(trials):
        return 1.0
    spread = float(scores.values.std())
    return spread if spread > _EQUAL * float(np.abs(scores.values).max()) else 1.0


_EDITS = ("replace", "replace", "insert", "omit")


@dataclass(frozen=True)
class OpNas(CheckedSearcher):
    """Return each of the best `parents` so far some `children`, mutated in structure at random and then by priority.

    The first `population` designs are random. A child takes a structural choice of its parent, such as that between
    attention and convolution in one layer, again at random. Then it changes one formula or one other choice: the
    operation at a place, or the option, is drawn from the softmax of upper confidence bounds (`priorities`) with the
    exploration weight `alpha`, in the unit of the score. Unless `guided`, all are equally likely. Parents and bounds
    change once a generation, when all children have been proposed.

    The paper leaves open how a formula is mutated. Here one place of it changes: an operation is replaced (half of the
    time), inserted or omitted, or an input replaced at random; what no longer fits is repaired (`space.rewrite`). An
    operation drawn may be the present one, so that a place whose operation does best is rarely touched. Designs whose
    formulas are equal by algebra, or but for the letters of their inputs, are one design, which is proposed once. The
    first proposal raises `IllegalInput` where cards are not Formwright's own: their formulas cannot be compared.
    """

    RATES_OPERATIONS: ClassVar[bool] = True  # what its page says: parents, `alpha` and `guided` are meant as here

    population: int = option(100, "random designs at the beginning", least=1)
    parents: int = option(5, "best designs that get children", least=1)
    children: int = option(5, "children of each parent", least=1)
    alpha: float = option(ALPHA, "exploration weight of the upper confidence bounds", least=0, most=1e6)
    guided: bool = option(True, "mutate by priority instead of uniformly")

    @staticmethod
    def for_budget(trials: int | None, steps: int | None) -> dict[str, int]:
        """Return a population that leaves four fifths of a small budget to evolution, and generations to match.

        A study that ends by time or for lack of progress may be short: it is taken for one of a hundred trials.
        """
        population = 20 if trials is None else min(100, max(4, trials // 5))
        return {
            "population": population,
            "parents": min(5, max(2, population // 4)),
            "children": min(5, max(1, population // 10)),
        }

    def ask(self, history: History, rng: Generator) -> Request:
        past = self._past(history)
        if not past or warming_up(history, self.population):
            return random_unseen(self.space, history, rng, self.legal, digest=_formula_digest).request(Budget.full())
        best = best_first(score(past, self.objectives), self.parents)
        turn = len(_children(history)) // self.children % self.parents
        parent = past[best[turn % len(best)]]
        known = past if self.guided else ()
        priorities = Priorities.of(self.space, known, self.objectives, self.alpha)

        def child() -> Design:
            changed = _at_random(self.space.root, parent.request.design, rng)
            return _by_merit(self.space.root, changed, priorities, rng)

        found = first_unseen(self.space, history, rng, child, self.legal, digest=_formula_digest)
        return found.request(Budget.full(), parent.number)

    def _past(self, history: History) -> tuple[Trial, ...]:
        """Return the finished trials that were proposed before the present generation began."""
        born, trials = _children(history), breeding(history)
        siblings = len(born) % (self.parents * self.children)
        if not siblings:
            return trials
        return tuple(trial for trial in trials if trial.number < born[-siblings].number) or trials


def _formula_digest(card: Any) -> str:
    if foreign([card]):
        raise IllegalInput(
            "the searcher 'op-nas' needs Formwright cards, whose formulas it can compare; this space has cards of the "
            f"class {type(card).__name__}. Use 'regularized-evolution'."
        )
    return plain_digest(card)


def _children(history: History) -> list[Trial]:
    return [trial for trial in history.trials if trial.request.parent is not None]


def _at_random(root: Combinator[Any], design: Design, rng: Generator) -> Design:
    """Redraw one structural choice at random, and everything that it makes active."""
    genes = [gene for gene in root.genes(design) if gene.structural and len(gene.options) > 1]
    if not genes:
        return design
    gene = genes[below(rng, len(genes))]
    option = gene.options[below(rng, len(gene.options))]
    return root.put(design, gene.path, option, lambda part, kept: part.sample(rng, "gene"))


def _by_merit(root: Combinator[Any], design: Design, priorities: Priorities, rng: Generator) -> Design:
    """Change one formula or one option, drawn by priority."""
    genes = [
        gene
        for gene in root.genes(design)
        if not gene.structural and (isinstance(gene, TermGene) or len(gene.options) > 1)
    ]
    if not genes:
        return design
    gene = genes[below(rng, len(genes))]
    if isinstance(gene, TermGene):
        option: Any = _edited(gene, priorities, rng) or gene.value
    else:
        options = gene.options
        option = options[draw_order(priorities.scores(gene.path, options), rng)[0]]
    return root.put(design, gene.path, option, lambda part, kept: part.sample(rng, "gene"))


def _edited(gene: TermGene, priorities: Priorities, rng: Generator) -> Term | None:
    """Change an operation or an input of a term; None where the change drawn is impossible."""
    place = below(rng, len(gene.operations) + len(gene.inputs))
    if place >= len(gene.operations):
        return gene.with_input(place - len(gene.operations), INPUTS[below(rng, len(INPUTS))])
    edit = _EDITS[below(rng, len(_EDITS))]
    if edit == "omit":
        return gene.without_operation(place, rng)
    move = gene.with_operation if edit == "replace" else gene.with_insertion
    drawn = (OPERATIONS[index] for index in draw_order(priorities.scores(place), rng))
    return next((term for operation in drawn if (term := move(place, operation, rng)) is not None), None)
