"""Random search: the baseline that every other searcher has to beat."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

from numpy.random import Generator

from formwright.core.errors import IllegalInput
from formwright.core.records import Budget, History, Objective, Request
from formwright.search.unseen import Legal, anything, random_unseen
from formwright.space import Space
from formwright.space.part import By


@dataclass(frozen=True)
class RandomSearch:
    """Draw designs, never the same one twice, all equally likely or `by="gene"`; the objectives do not matter."""

    space: Space
    objectives: tuple[Objective, ...] = ()
    legal: Legal = anything
    by: By = "design"

    def __post_init__(self) -> None:
        if self.by not in get_args(By):
            raise IllegalInput(f"by is {self.by!r}; it must be {' or '.join(map(repr, get_args(By)))}.")

    def ask(self, history: History, rng: Generator) -> Request:
        """Return the next draw."""
        return random_unseen(self.space, history, rng, self.legal, self.by).request(Budget.full())
