"""What searchers that predict scores share: which trials they learn from, where they look, and what they take."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from typing import Any, cast

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from formwright.arch.card import Card
from formwright.core.errors import IllegalInput
from formwright.core.records import Budget, History, Objective, Request, Trial
from formwright.search.fronts import best_first
from formwright.search.listing import Place
from formwright.search.parents import breeding
from formwright.search.scores import score
from formwright.search.unseen import Legal, Proposal, random_unseen
from formwright.space import Space

Floats = NDArray[np.float64]

INITIAL = 12


def initial_for(trials: int | None) -> int:
    """Return how many random designs to begin with: 12, or a fifth of a small budget."""
    return INITIAL if trials is None else min(INITIAL, max(3, trials // 5))


def placed(trials: Iterable[Trial], listed: Container[str]) -> list[Trial]:
    """Keep the trials that have a point: their design is known, or their card's digest is listed."""
    return [trial for trial in trials if trial.request.design is not None or trial.request.card.digest in listed]


def points(place: Place, asked: Sequence[Request | Proposal]) -> Floats:
    """Return the points of what was asked for, or may be."""
    # the cards of a space are Formwright's own
    return place([one.design for one in asked], cast("list[Card]", [one.card for one in asked]))


def elite(trials: Sequence[Trial], objectives: Sequence[Objective], number: int) -> list[Any]:
    """Return the designs of the best trials, the best first; a card of the user's own has none."""
    known = [trial for trial in trials if trial.request.design is not None]
    return [known[index].request.design for index in best_first(score(known, objectives), number)]


def mutants(space: Space, parents: Sequence[Any], number: int, rng: Generator) -> Iterator[Any]:
    """Yield up to `number` mutants, of one parent after the other; a parent that has none is passed over."""
    for index in range(number if parents else 0):
        try:
            yield space.mutate(parents[index % len(parents)], rng)
        except IllegalInput:  # a constrained space finds no move from here
            continue


def offspring(
    space: Space, history: History, objectives: Sequence[Objective], parents: int, number: int, rng: Generator
) -> Iterator[Any]:
    """Yield up to `number` mutants of the `parents` best designs so far."""
    return mutants(space, elite(breeding(history), objectives, parents), number, rng)


def new_proposals(space: Space, designs: Iterable[Any], history: History) -> list[Proposal]:
    """Return the designs whose cards nobody asked for yet, each card once."""
    seen = history.digests
    proposals = (Proposal(design, space.card(design)) for design in designs)
    return list({found.card.digest: found for found in proposals if found.card.digest not in seen}.values())


def ranked(worth: Floats, rng: Generator, second: Floats | None = None) -> list[int]:
    """Return the rows from the largest worth to the smallest; equals by `second`, and then by chance."""
    keys = [rng.random(len(worth)), *([] if second is None else [-second]), -worth]
    order: list[int] = np.lexsort(keys).tolist()
    return order


def first_legal(proposals: Iterable[Proposal], legal: Legal) -> Proposal | None:
    """Return the first proposal within the limits, which are checked for no proposal behind it."""
    return next((proposal for proposal in proposals if legal(proposal.card)), None)


def first_or_random(
    proposals: Iterable[Proposal], space: Space, history: History, rng: Generator, legal: Legal
) -> Request:
    """Ask for the first proposal within the limits, or for a random unseen design where there is none."""
    proposal = first_legal(proposals, legal) or random_unseen(space, history, rng, legal)
    return proposal.request(Budget.full())
