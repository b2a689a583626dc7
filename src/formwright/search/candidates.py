"""Where searchers that predict scores may look: designs that nobody asked for yet, with their points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from formwright.core.records import History, Objective
from formwright.search.listing import Listing
from formwright.search.predictors import new_proposals, offspring, points
from formwright.search.unseen import Legal, Proposal, anything
from formwright.space import Space

Rows = NDArray[np.intp]

PARENTS, MUTANTS = 5, 100  # where a space is too large to list, mutants of the best join the pool


@dataclass(frozen=True, eq=False)
class Candidates:
    """Hold rows of a listing and further proposals, with the points of both in this order."""

    listed: Listing
    rows: Rows
    more: tuple[Proposal, ...]
    points: NDArray[np.floating[Any]]

    def proposal(self, index: int) -> Proposal:
        """Return what stands at a row of the points."""
        if index >= len(self.rows):
            return self.more[index - len(self.rows)]
        row = self.rows[index]
        return Proposal(self.listed.designs[row], self.listed.cards[row])


def legal_rows(listed: Listing, legal: Legal) -> Rows:
    """Return the rows of a listing that are within the limits, each card once; every card is checked."""
    rows = listed.row.values()
    return np.array([row for row in rows if legal is anything or legal(listed.cards[row])], dtype=np.intp)


def unseen(listed: Listing, history: History, rows: Rows, more: Sequence[Proposal] = ()) -> Candidates:
    """Return those rows of a listing that nobody asked for yet, and more designs that are not listed."""
    known = listed.row
    seen = [known[digest] for digest in history.digests if digest in known]
    rows = rows[~np.isin(rows, seen)]
    more = tuple(proposal for proposal in more if proposal.card.digest not in known)
    places = listed.points[rows]
    if more:
        places = np.concatenate([places, points(listed.points_of, more)])
    return Candidates(listed, rows, more, places)


def near_the_best(
    space: Space, listed: Listing, history: History, objectives: Sequence[Objective], rng: Generator
) -> list[Proposal]:
    """Return new mutants of the best designs where a space is too large to list, and none where all are listed."""
    if listed.whole:
        return []
    return new_proposals(space, offspring(space, history, objectives, PARENTS, MUTANTS, rng), history)
