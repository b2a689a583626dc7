"""OP-NAS, the operation-priority search of AutoBERT-Zero (Gao et al., 2022)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from numpy.random import Generator

from formwright.arch.plain import plain_digest
from formwright.arch.primitives import INPUTS, Term
from formwright.core.protocols import Design
from formwright.core.records import Budget, History, Objective, Request, Trial
from formwright.search.fronts import best_first
from formwright.search.options import at_least, check, not_negative, yes_or_no
from formwright.search.parents import breeding, warming_up
from formwright.search.priorities import ALPHA, OPERATIONS, Priorities, draw_order
from formwright.search.scores import goals_of, score
from formwright.search.unseen import Legal, anything, first_unseen, random_unseen
from formwright.space import Part, Space
from formwright.space.draw import below
from formwright.space.gene import Gene
from formwright.space.term_gene import TermGene

_EDITS = ("replace", "replace", "insert", "omit")


@dataclass(frozen=True)
class OpNas:
    """Give each of the best `parents` so far some `children`, which change in structure at random and then by merit.

    The first `population` designs are random. A child takes a structural choice of its parent, such as that between
    attention and convolution in one layer, anew at random. Then it changes one formula or one other choice: the
    operation at a place, or the option, is drawn from the softmax of upper confidence bounds (`priorities`) with the
    exploration weight `alpha`, in the unit of the score. Unless `guided`, all are equally likely, and nothing else is
    different. Parents and bounds change once a generation, when all children have been proposed.

    The paper leaves open how a formula is mutated. Here one place of it changes: an operation is replaced (half of the
    time), inserted or omitted, or an input replaced at random; what no longer fits is mended (`space.rewrite`). An
    operation drawn may be the present one, so that a place whose operation does best is rarely touched. Designs whose
    formulas are equal by algebra, or but for the letters of their inputs, are one design, which is proposed once.
    """

    space: Space
    objectives: tuple[Objective, ...]
    legal: Legal = anything
    population: int = 100
    parents: int = 5
    children: int = 5
    alpha: float = ALPHA
    guided: bool = True

    def __post_init__(self) -> None:
        goals_of(self.objectives)
        whole = at_least(1, population=self.population, parents=self.parents, children=self.children)
        check(whole + not_negative(alpha=self.alpha) + yes_or_no(guided=self.guided))

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
        """Return a child of the parent whose turn it is."""
        past = self._past(history)
        if not past or warming_up(history, self.population):
            return random_unseen(self.space, history, rng, self.legal, digest=plain_digest).request(Budget.full())
        best = best_first(score(past, self.objectives), self.parents)
        turn = len(_children(history)) // self.children % self.parents
        parent = past[best[turn % len(best)]]
        told = past if self.guided else ()
        priorities = Priorities.of(self.space, told, self.objectives, self.alpha)
        child = partial(self._child, parent.request.design, priorities, rng)
        found = first_unseen(self.space, history, rng, child, self.legal, digest=plain_digest)
        return found.request(Budget.full(), parent.number)

    def _past(self, history: History) -> tuple[Trial, ...]:
        """Return the finished trials that were asked for before the present generation began."""
        born, trials = _children(history), breeding(history)
        siblings = len(born) % (self.parents * self.children)
        if not siblings:
            return trials
        return tuple(trial for trial in trials if trial.number < born[-siblings].number) or trials

    def _child(self, design: Design, priorities: Priorities, rng: Generator) -> Design:
        root = self.space.root
        return _by_merit(root, _at_random(root, design, rng), priorities, rng)


def _children(history: History) -> list[Trial]:
    return [trial for trial in history.trials if trial.request.parent is not None]


def _at_random(root: Part[Any], design: Design, rng: Generator) -> Design:
    """Draw one structural choice anew, which may come out as it was; what appears is random too."""
    genes = [gene for gene in root.genes(design) if gene.structural and len(gene.options) > 1]
    if not genes:
        return design
    gene = genes[below(rng, len(genes))]
    option = gene.options[below(rng, len(gene.options))]
    return root.put(design, gene.path, option, lambda part, kept: part.sample(rng, "gene"))


def _by_merit(root: Part[Any], design: Design, priorities: Priorities, rng: Generator) -> Design:
    """Change one formula or one option, as the priorities would have it."""
    genes = [gene for gene in root.genes(design) if not gene.structural and _can_change(gene)]
    if not genes:
        return design
    gene = genes[below(rng, len(genes))]
    if isinstance(gene, TermGene):
        option: Any = _edited(gene, priorities, rng) or gene.value
    else:
        options = gene.options
        option = options[draw_order(priorities.of_options(gene, options), rng)[0]]
    return root.put(design, gene.path, option, lambda part, kept: part.sample(rng, "gene"))


def _can_change(gene: Gene) -> bool:
    return isinstance(gene, TermGene) or len(gene.options) > 1


def _edited(gene: TermGene, priorities: Priorities, rng: Generator) -> Term | None:
    """Change an operation or an input of a term; None where the change drawn is impossible."""
    place = below(rng, len(gene.operations) + len(gene.inputs))
    if place >= len(gene.operations):
        return gene.with_input(place - len(gene.operations), INPUTS[below(rng, len(INPUTS))])
    edit = _EDITS[below(rng, len(_EDITS))]
    if edit == "omit":
        return gene.without_operation(place, rng)
    move = gene.with_operation if edit == "replace" else gene.with_insertion
    drawn = (OPERATIONS[index] for index in draw_order(priorities.of_operations(place), rng))
    return next((term for operation in drawn if (term := move(place, operation, rng)) is not None), None)
