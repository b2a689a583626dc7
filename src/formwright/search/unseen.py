"""Proposals that are new and within the limits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass
from typing import Any

from numpy.random import Generator

from formwright.core.errors import IllegalInput, NotCountable
from formwright.core.protocols import CardLike, Design
from formwright.core.records import Budget, History, Request
from formwright.search.errors import NoLegalDesign, SpaceExhausted
from formwright.space import Space
from formwright.space.part import By

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
        """Ask for this design at a budget."""
        return Request(self.card, budget, parent, self.design)


def anything(card: Any) -> bool:
    """Hold every card for legal."""
    return True


def own_digest(card: Any) -> str:
    """Take cards for the same that are equal to the byte."""
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
    """Return the first legal design whose card nobody asked for yet; cards of one `digest` are taken for the same.

    `propose` is called up to `tries` times, and need not know the space's own constraints. Then the last proposal is
    mutated on and on, then designs are drawn uniformly, and then a space of at most 100,000 designs is listed. Raise
    `SpaceExhausted` when nothing is left and `NoLegalDesign` when nothing legal was found.
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
    """Return a randomly drawn legal design whose card nobody asked for yet; raise as `first_unseen` does.

    Nearly all designs are of the largest depth; drawn `by="gene"`, every depth is as likely as any other.
    """
    return first_unseen(space, history, rng, lambda: space.sample(rng, by), legal, 10 * TRIES, digest)


def _draws(space: Space, rng: Generator, propose: Propose, tries: int) -> Iterator[Design]:
    last: list[Design] = []

    def stroll() -> Design:
        # away from a neighbourhood that is used up, one mutation after the other
        last[:] = [space.mutate(last[0], rng) if last else space.sample(rng)]
        return last[0]

    for draw, times in ((propose, tries), (stroll, TRIES), (lambda: space.sample(rng), TRIES)):
        try:
            for _ in range(times):
                last[:] = [draw()]
                yield last[0]
        except IllegalInput:  # a constrained space finds no move from here: go on to the next way
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
    """Tell whether a space has at most 100,000 designs, so that all of them can be looked at."""
    try:
        return space.count() <= MOST_LISTED
    except NotCountable:
        return False
