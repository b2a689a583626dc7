import numpy as np

from formwright.core.records import History
from formwright.core.rng import derive
from formwright.search.listing import listing
from formwright.search.random_search import RandomSearch
from formwright.search.survey import Survey
from formwright.search.targets import targets
from formwright.search.unseen import anything
from formwright.testing.loop import ask, run
from formwright.testing.objective import Toy
from formwright.testing.searcher_contract import ACCURACY
from formwright.testing.spaces import large, small

GOAL = (ACCURACY,)


def test_finished_and_pending_trials_have_points_and_the_rest_are_candidates() -> None:
    space, listed = small(), listing(small(), "one-hot")
    searcher = RandomSearch(space, GOAL)
    history = ask(searcher, run(searcher, Toy(), 5), seed=0)
    seen = Survey(space, GOAL, anything, "one-hot", 2).look(history, derive(0))
    assert seen is not None
    rows = [listed.row[trial.request.card.digest] for trial in history.trials]
    assert np.array_equal(seen.points, listed.points[rows[:5]])
    assert np.array_equal(seen.pending, listed.points[rows[5:]])
    assert np.array_equal(seen.scores, targets(history.finished, GOAL))
    assert set(seen.candidates.rows) == set(listed.row.values()) - set(rows)


def test_limits_hold_for_candidates() -> None:
    space = small()
    history = run(RandomSearch(space, GOAL), Toy(), 3)
    allowed = {card.digest for card in listing(space, "one-hot").cards[:40]}
    seen = Survey(space, GOAL, lambda card: card.digest in allowed, "one-hot", 2).look(history, derive(0))
    assert seen is not None
    found = {seen.candidates.proposal(index).card.digest for index in range(len(seen.candidates.points))}
    assert found == allowed - history.digests


def test_too_little_is_nothing() -> None:
    survey = Survey(small(), GOAL, anything, "one-hot", 2)
    assert survey.look(History(), derive(0)) is None
    assert survey.look(run(RandomSearch(small(), GOAL), Toy(), 1), derive(0)) is None
    nothing = Survey(small(), GOAL, lambda card: False, "one-hot", 2)
    assert nothing.look(run(RandomSearch(small(), GOAL), Toy(), 3), derive(0)) is None


def test_a_space_too_large_to_list_has_mutants_of_the_best_among_its_candidates() -> None:
    seen = Survey(large(), GOAL, anything, "one-hot", 2).look(run(RandomSearch(large(), GOAL), Toy(), 3), derive(0))
    assert seen is not None
    assert seen.candidates.more


def test_nothing_is_looked_at_before_the_first_trials_have_ended() -> None:
    survey = Survey(small(), GOAL, anything, "one-hot", 4)
    assert survey.look(run(RandomSearch(small(), GOAL), Toy(), 3), derive(0)) is None
    assert survey.look(run(RandomSearch(small(), GOAL), Toy(), 4), derive(0)) is not None
