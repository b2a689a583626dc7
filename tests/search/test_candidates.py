from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm
from tests.search.smooth import Smooth

from formwright.core.records import Budget, History, Request, Trial
from formwright.core.rng import derive
from formwright.search.bananas import Bananas
from formwright.search.baselines import RandomSearch
from formwright.search.candidates import (
    MUTANTS,
    PARENTS,
    PredictorSearch,
    SurrogateSearch,
    elite,
    expected_improvement,
    legal_rows,
    mutants,
    near_the_best,
    new_proposals,
    offspring,
    placed,
    points,
    ranked,
    unseen,
)
from formwright.search.listing import listing
from formwright.search.proposals import Proposal, anything, random_unseen
from formwright.search.scores import targets
from formwright.search.surrogate_searchers import Forest, GpBo
from formwright.space import Space
from formwright.space.zoo import load_space
from formwright.testing.searcher_contract import ACCURACY
from formwright.testing.toy_problem import Toy, ask, large, run, small, tell, tiny, twins

GOAL = (ACCURACY,)


def history(trials: int = 8) -> History:
    return run(RandomSearch(small(), GOAL), Toy(), trials)


def test_trials_have_points_by_their_design_or_by_the_list() -> None:
    known, listed, foreign = history(3).trials
    listed, foreign = (Trial(t.number, Request(t.request.card)) for t in (listed, foreign))
    assert placed([known, listed, foreign], {listed.request.card.digest}) == [known, listed]
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


def test_mutants_take_turns_and_parents_without_a_move_are_skipped() -> None:
    space, rng = small(), derive(0)
    first, second = [trial.request.design for trial in history(2).trials]
    expected = [space.mutate(parent, rng) for parent in (first, second, first)]
    assert list(mutants(space, [first, second], 3, derive(0))) == expected
    assert list(mutants(space, [], 3, derive(0))) == []
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


@dataclass(frozen=True)
class Promising(PredictorSearch):
    proposals: Any = ()

    def _promising(self, history: History, rng: Any) -> Iterator[Proposal]:
        return iter(self.proposals)


def test_the_first_legal_proposal_is_asked_for_or_else_a_random_new_design() -> None:
    space, past, checked = small(), history(4), []
    proposals = [Proposal(design, space.card(design)) for _, design in zip(range(3), space.enumerate(), strict=False)]

    def ask(legal: Any) -> Request:
        return Promising(space, (ACCURACY,), legal, proposals=tuple(proposals)).ask(past, derive(1))

    assert ask(lambda card: checked.append(card) or len(checked) == 2) == proposals[1].request(Budget.full())
    assert len(checked) == 2  # those after the first legal one are not checked
    others = {proposal.card.digest for proposal in proposals}
    expected = random_unseen(space, past, derive(1), lambda card: card.digest not in others)
    assert ask(lambda card: card.digest not in others) == expected.request(Budget.full())
    proposals.clear()
    assert ask(anything).card.digest not in past.digests


@pytest.mark.parametrize(
    "searcher", [GpBo(small(), GOAL, coordinates="one-hot", initial=3), Forest(small(), GOAL, initial=3)], ids=type
)
def test_the_first_designs_are_random(searcher: SurrogateSearch) -> None:
    history = History()
    for number in range(4):
        history = ask(searcher, history, seed=0)
        drawn = ask(RandomSearch(small(), GOAL, by="gene"), History(history.trials[:number]), seed=0)
        assert (history.trials[number] == drawn.trials[number]) == (number < 3)
        history = tell(history, number, Toy().evaluate(history.trials[number].request))


@pytest.mark.parametrize(
    "searcher", [GpBo(small(), GOAL, coordinates="one-hot", initial=4), Forest(small(), GOAL, initial=4)], ids=type
)
def test_pending_trials_count_with_their_predicted_scores_and_failed_ones_do_not(searcher: SurrogateSearch) -> None:
    assert Smooth(small()).asks_otherwise_for_pending(searcher)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("kind", "options", "share"), [(GpBo, {"coordinates": "one-hot"}, 0.2), (Forest, {}, 0.5), (Bananas, {}, 0.3)]
)
def test_predictors_beat_random_search(kind: type[PredictorSearch], options: dict[str, str], share: float) -> None:
    space = load_space("flexibert-nano")
    problem, searcher = Smooth(space), kind(space, GOAL, **options)  # type: ignore[call-arg]
    modelled = [problem.better(searcher, 60, seed) for seed in range(2)]
    drawn = [problem.better(RandomSearch(space, GOAL), 60, seed) for seed in range(12)]
    assert np.mean(modelled) < share * np.mean(drawn)
    assert kind is not GpBo or max(modelled) < 0.002


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


def test_unseen_rows_within_the_limits_are_there_once() -> None:
    listed = listing(small(), "one-hot")
    history = History((Trial(0, Request(listed.cards[7])),))
    assert unseen(listed, history, np.array([5, 7, 9])).rows.tolist() == [5, 9]
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
    assert near_the_best(small(), listing(small(), "one-hot"), history(3), GOAL, derive(0)) == []


def test_finished_and_pending_trials_have_points_and_the_rest_are_candidates() -> None:
    space, listed = small(), listing(small(), "one-hot")
    searcher = RandomSearch(space, GOAL)
    history = ask(searcher, run(searcher, Toy(), 5), seed=0)
    seen = Forest(space, GOAL, initial=2).look(history, derive(0))
    rows = [listed.row[trial.request.card.digest] for trial in history.trials]
    assert np.array_equal(seen.points, listed.points[rows[:5]])
    assert np.array_equal(seen.pending, listed.points[rows[5:]])
    assert np.array_equal(seen.scores, targets(history.finished, GOAL))
    assert set(seen.candidates.rows) == set(listed.row.values()) - set(rows)


def test_limits_hold_for_candidates() -> None:
    space = small()
    history = run(RandomSearch(space, GOAL), Toy(), 3)
    allowed = {card.digest for card in listing(space, "one-hot").cards[:40]}
    seen = Forest(space, GOAL, lambda card: card.digest in allowed, initial=2).look(history, derive(0))
    found = {seen.candidates.proposal(index).card.digest for index in range(len(seen.candidates.points))}
    assert found == allowed - history.digests


@pytest.mark.parametrize(
    ("initial", "trials", "legal", "enough"),
    [(2, 0, True, False), (2, 1, True, False), (2, 3, True, True), (2, 3, False, False), (4, 3, True, False)],
)
def test_too_few_trials_or_candidates_are_nothing(initial: int, trials: int, legal: bool, enough: bool) -> None:
    seen = Forest(small(), GOAL, lambda card: legal, initial=initial).look(history(trials), derive(0))
    assert (seen is not None) == enough


def test_a_space_too_large_to_list_has_mutants_of_the_best_among_its_candidates() -> None:
    seen = Forest(large(), GOAL, initial=2).look(run(RandomSearch(large(), GOAL), Toy(), 3), derive(0))
    assert seen.candidates.more


def test_the_improvement_expected_is_the_mean_of_draws() -> None:
    mean, deviation = np.array([0.0, 1.0, -2.0]), np.array([1.0, 0.5, 2.0])
    quantiles = norm.ppf((np.arange(200_000) + 0.5) / 200_000)
    drawn = np.maximum(mean[:, None] + deviation[:, None] * quantiles - 0.3, 0.0).mean(axis=1)
    np.testing.assert_allclose(expected_improvement(mean, deviation, 0.3), drawn, atol=1e-4)
