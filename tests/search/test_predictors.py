import numpy as np

from formwright.core.records import Budget, History, Request, Trial
from formwright.core.rng import derive
from formwright.search.predictors import (
    elite,
    first_legal,
    first_or_random,
    initial_for,
    mutants,
    new_proposals,
    offspring,
    placed,
    points,
    ranked,
)
from formwright.search.random_search import RandomSearch
from formwright.search.unseen import Proposal, anything, random_unseen
from formwright.testing.loop import run
from formwright.testing.objective import Toy
from formwright.testing.searcher_contract import ACCURACY
from formwright.testing.spaces import small, tiny

GOAL = (ACCURACY,)


def history(trials: int = 8) -> History:
    return run(RandomSearch(small(), GOAL), Toy(), trials)


def test_a_fifth_of_a_small_budget_is_random() -> None:
    assert [initial_for(trials) for trials in (None, 1_000, 60, 40, 1)] == [12, 12, 12, 8, 3]


def test_trials_have_a_point_by_their_design_or_by_the_list() -> None:
    known, listed, foreign = history(3).trials
    listed, foreign = (Trial(t.number, Request(t.request.card)) for t in (listed, foreign))
    assert placed([known, listed, foreign], {listed.request.card.digest}) == [known, listed]


def test_points_come_in_the_order_asked() -> None:
    space, asked = small(), [trial.request for trial in history().trials]
    found = points(lambda designs, cards: np.array([space.encode(design) for design in designs]), asked)
    assert found.tolist() == [space.encode(request.design).tolist() for request in asked]


def test_the_elite_are_the_best_first() -> None:
    trials = history().finished
    scores = [trial.observation.metrics["accuracy"] for trial in trials if trial.observation]
    order = np.argsort(-np.array(scores), kind="stable")
    assert elite(trials, GOAL, 3) == [trials[index].request.design for index in order[:3]]
    bare = [Trial(t.number, Request(t.request.card), t.state, t.observation) for t in trials]
    assert elite(bare, GOAL, 3) == []


def test_mutants_take_turns() -> None:
    space, rng = small(), derive(0)
    first, second = [trial.request.design for trial in history(2).trials]
    expected = [space.mutate(parent, rng) for parent in (first, second, first)]
    assert list(mutants(space, [first, second], 3, derive(0))) == expected
    assert list(mutants(space, [], 3, derive(0))) == []


def test_parents_without_a_move_are_passed_over() -> None:
    space = tiny()
    only = space.sample(derive(0))
    alone = space.restrict("only one", lambda card: card == space.card(only))
    assert list(mutants(alone, [only], 2, derive(0))) == []


def test_offspring_are_mutants_of_the_best_so_far() -> None:
    space, past = small(), history()
    best = elite(past.finished, GOAL, 2)
    assert list(offspring(space, past, GOAL, 2, 5, derive(0))) == list(mutants(space, best, 5, derive(0)))
    assert list(offspring(space, History(), GOAL, 2, 5, derive(0))) == []


def test_proposals_are_new_and_distinct() -> None:
    space, past = small(), history(4)
    old = past.trials[0].request.design
    new = next(design for design in space.enumerate() if space.card(design).digest not in past.digests)
    assert new_proposals(space, [old, new, new], past) == [Proposal(new, space.card(new))]


def test_ranks_go_by_worth_then_by_the_second_then_by_chance() -> None:
    worth, second = np.array([0.0, 1.0, 0.0, 0.0]), np.array([1.0, 0.0, 2.0, 1.0])
    found = {tuple(ranked(worth, derive(seed), second)) for seed in range(20)}
    assert found == {(1, 2, 0, 3), (1, 2, 3, 0)}
    assert {ranked(worth, derive(seed))[0] for seed in range(20)} == {1}
    assert {ranked(worth, derive(seed))[1] for seed in range(20)} == {0, 2, 3}


def test_limits_are_checked_up_to_the_first_legal_proposal() -> None:
    space, checked = small(), []
    proposals = [Proposal(design, space.card(design)) for _, design in zip(range(5), space.enumerate(), strict=False)]

    def legal(card: object) -> bool:
        checked.append(card)
        return len(checked) == 2

    assert first_legal(proposals, legal) == proposals[1]
    assert len(checked) == 2
    assert first_legal(proposals, lambda card: False) is None


def test_where_no_proposal_is_legal_a_random_new_design_is_asked_for() -> None:
    space, past = small(), history(4)
    proposals = [Proposal(design, space.card(design)) for _, design in zip(range(3), space.enumerate(), strict=False)]
    others = {proposal.card.digest for proposal in proposals}
    asked = first_or_random(proposals, space, past, derive(1), anything)
    assert asked == proposals[0].request(Budget.full())
    asked = first_or_random(proposals, space, past, derive(1), lambda card: card.digest not in others)
    assert asked == random_unseen(space, past, derive(1), lambda card: card.digest not in others).request(Budget.full())
    assert first_or_random([], space, past, derive(1), anything).card.digest not in past.digests
