import numpy as np
import pytest

from formwright.core.records import History, Request, Trial
from formwright.core.rng import derive
from formwright.search.candidates import MUTANTS, PARENTS, legal_rows, near_the_best, unseen
from formwright.search.listing import listing
from formwright.search.predictors import elite, mutants, points
from formwright.search.random_search import RandomSearch
from formwright.search.unseen import Proposal, anything
from formwright.space import Space
from formwright.testing.loop import run
from formwright.testing.objective import Toy
from formwright.testing.searcher_contract import ACCURACY
from formwright.testing.spaces import large, small, twins

GOAL = (ACCURACY,)


@pytest.mark.parametrize("space", [small(), twins()], ids=lambda space: str(space.name))
def test_listed_designs_that_nobody_asked_for_are_there_once(space: Space) -> None:
    listed = listing(space, "one-hot")
    history = History(tuple(Trial(number, Request(listed.cards[number])) for number in range(3)))
    found = unseen(listed, history, legal_rows(listed, anything))
    proposals = [found.proposal(index) for index in range(len(found.points))]
    digests = [proposal.card.digest for proposal in proposals]
    assert len(set(digests)) == len(digests)
    assert set(digests) == {card.digest for card in listed.cards} - history.digests
    assert np.array_equal(found.points, points(listed.points_of, proposals))


def test_of_given_rows_alone_the_unseen_are_there() -> None:
    listed = listing(small(), "one-hot")
    history = History((Trial(0, Request(listed.cards[7])),))
    assert unseen(listed, history, np.array([5, 7, 9])).rows.tolist() == [5, 9]


def test_rows_within_the_limits_are_there_once() -> None:
    listed = listing(twins(), "one-hot")
    allowed = {card.digest for card in listed.cards[::2]}
    rows = legal_rows(listed, lambda card: card.digest in allowed)
    assert {listed.cards[row].digest for row in rows} == allowed
    assert len(rows) == len(allowed) < len(legal_rows(listed, anything)) == len(listed.row)


def test_designs_that_are_not_listed_join_at_the_end() -> None:
    space = large()
    listed = listing(space, "one-hot")
    more = [Proposal(design, space.card(design)) for design in (space.sample(derive(seed)) for seed in range(3))]
    listed_already = Proposal(listed.designs[0], listed.cards[0])
    found = unseen(listed, History(), legal_rows(listed, anything), [listed_already, *more])
    assert len(found.points) == len(listed.designs) + 3
    assert [found.proposal(len(listed.designs) + index) for index in range(3)] == more
    assert np.array_equal(found.points[-3:], points(listed.points_of, more))


def test_near_the_best_are_their_mutants_that_are_new() -> None:
    space = large()
    history = run(RandomSearch(space, GOAL), Toy(), 9)
    found = near_the_best(space, listing(space, "one-hot"), history, GOAL, derive(0))
    bred = mutants(space, elite(history.finished, GOAL, PARENTS), MUTANTS, derive(0))
    assert {proposal.card.digest for proposal in found} == {space.card(one).digest for one in bred} - history.digests
    assert MUTANTS / 2 < len(found) <= MUTANTS


def test_where_all_designs_are_listed_none_are_needed() -> None:
    history = run(RandomSearch(small(), GOAL), Toy(), 3)
    assert near_the_best(small(), listing(small(), "one-hot"), history, GOAL, derive(0)) == []
