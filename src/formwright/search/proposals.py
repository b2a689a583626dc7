"""Proposals that are new and within the limits, and the trials that may be parents."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass
from itertools import islice
from typing import Any

from numpy.random import Generator

from formwright.core.errors import FormwrightError, IllegalInput, NotCountable
from formwright.core.protocols import CardLike, Design
from formwright.core.records import Budget, History, Request, Trial
from formwright.space import Space
from formwright.space.design import By


class SpaceExhausted(FormwrightError, LookupError):
    """Raised when every allowed design has been proposed."""


class NoLegalDesign(FormwrightError, ValueError):
    """Raised when no design within the limits was found; the message says how many were tried."""


Legal = Callable[[Any], bool]
Propose = Callable[[], Design]
Digest = Callable[[Any], str]
TRIES = 100
MOST_LISTED = 100_000


@dataclass(frozen=True)
class Proposal:
    """Pair a design with its card."""

    design: Design
    card: CardLike

    def request(self, budget: Budget, parent: int | None = None) -> Request:
        return Request(self.card, budget, parent, self.design)


def anything(card: Any) -> bool:
    return True


def own_digest(card: Any) -> str:
    return str(card.digest)


def first_unseen(
    space: Space,
    history: History,
    rng: Generator,
    propose: Propose,
    legal: Legal = anything,
    tries: int = TRIES,
    digest: Digest = own_digest,
) -> Proposal:
    """Return the first legal design whose card has not been proposed; cards with equal `digest` count as one.

    `propose` is called up to `tries` times, and need not know the space's own constraints. If all are known or illegal,
    the last proposal is mutated repeatedly, then designs are drawn uniformly, and finally a space of at most 100,000
    designs is listed. Raise `SpaceExhausted` when no design is left and `NoLegalDesign` when nothing legal was found.
    """
    seen = {digest(trial.request.card) for trial in history.trials}
    drawn = 0
    refused = 0
    for design in _draws(space, rng, propose, tries):
        drawn += 1
        card = space.card(design)
        if digest(card) in seen:
            continue
        if legal(card) and (not space.where or space.contains(design)):
            return Proposal(design, card)
        refused += 1
    if listable(space):
        return _from_list(space, seen, rng, legal, digest)
    if not refused:
        raise SpaceExhausted(f"none of {drawn} designs drawn from space {space.name!r} is new.")
    raise NoLegalDesign(
        f"found no new design of space {space.name!r} within the limits: {drawn} designs were drawn, {refused} of them "
        f"new and all beyond a limit. Loosen the limits."
    )


def random_unseen(
    space: Space,
    history: History,
    rng: Generator,
    legal: Legal = anything,
    by: By = "gene",
    digest: Digest = own_digest,
) -> Proposal:
    """Return a randomly drawn legal design whose card has not been proposed; raise as `first_unseen` does.

    Nearly all designs are of the largest depth; drawn `by="gene"`, every depth is as likely as any other.
    """
    return first_unseen(space, history, rng, lambda: space.sample(rng, by), legal, 10 * TRIES, digest)


def _draws(space: Space, rng: Generator, propose: Propose, tries: int) -> Iterator[Design]:
    last: list[Design] = []

    def stroll() -> Design:
        # a random walk away from a neighbourhood that is used up
        last[:] = [space.mutate(last[0], rng) if last else space.sample(rng)]
        return last[0]

    for draw, times in ((propose, tries), (stroll, TRIES), (lambda: space.sample(rng), TRIES)):
        try:
            for _ in range(times):
                last[:] = [draw()]
                yield last[0]
        except IllegalInput:  # a constrained space has no move from here: try the next source
            continue


def _from_list(space: Space, seen: Set[str], rng: Generator, legal: Legal, digest: Digest) -> Proposal:
    pairs = ((design, space.card(design)) for design in space.enumerate())
    left = {digest(card): Proposal(design, card) for design, card in pairs if digest(card) not in seen}
    allowed = [proposal for proposal in left.values() if legal(proposal.card)]
    if allowed:
        return allowed[int(rng.integers(len(allowed)))]
    if left and not seen:
        raise NoLegalDesign(f"none of the {len(left):,} designs of space {space.name!r} is within the limits.")
    within = f" within the limits; {len(left):,} others are not" if left else ""
    raise SpaceExhausted(f"every design of space {space.name!r} has been asked for{within}.")


def listable(space: Space) -> bool:
    """Return whether a space has at most 100,000 designs, so that all of them can be enumerated."""
    try:
        return space.count() <= MOST_LISTED
    except NotCountable:
        return False


def breeding(history: History) -> tuple[Trial, ...]:
    """Return the finished trials whose design is known; a card given by the user has none."""
    return tuple([trial for trial in history.finished if trial.request.design is not None])


def youngest(history: History, number: int) -> tuple[Trial, ...]:
    """Return the last `number` trials of `breeding`, without reading the others."""
    found = (trial for trial in reversed(history.finished) if trial.request.design is not None)
    return tuple(islice(found, number))[::-1]


def warming_up(history: History, population: int) -> bool:
    """Return whether fewer than `population` trials are finished or under way; failed trials do not count."""
    alive = (trial for trial in history.trials if trial.state != "failed")
    return sum(1 for _ in islice(alive, population)) < population
