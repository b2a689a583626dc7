import numpy as np
import pytest
from tests.search.contract import Contract
from tests.search.smooth import Smooth

from formwright.core.rng import derive
from formwright.search.baselines import RandomSearch
from formwright.search.forest import Forest, grown
from formwright.testing.searcher_contract import ACCURACY
from formwright.testing.spaces import small

GOAL = (ACCURACY,)


@pytest.mark.slow
class TestForest(Contract):
    kind, trials, options = Forest, 14, {"trees": 6, "initial": 6}


@pytest.mark.long
def test_it_beats_random_search_in_a_small_space() -> None:
    problem = Smooth(small())
    found = [problem.better(Forest(small(), GOAL, initial=8), 40, seed) for seed in range(2)]
    drawn = [problem.better(RandomSearch(small(), GOAL), 40, seed) for seed in range(8)]
    assert np.mean(found) < np.mean(drawn)


def test_a_forest_learns_what_choices_do_together() -> None:
    points = derive(0).integers(2, size=(200, 6)).astype(float)
    scores = np.where(points[:, 0] == points[:, 1], 1.0, -1.0)
    queries = np.array([[1, 1, 0, 0, 0, 0], [0, 0, 1, 1, 1, 1], [1, 0, 0, 0, 0, 0]], np.float32)
    found = grown(points, scores, queries, 20, derive(1))
    assert found.shape == (20, 3)
    assert found.mean(axis=0) == pytest.approx([1, 1, -1], abs=0.5)
    assert np.array_equal(found, grown(points, scores, queries, 20, derive(1)))
    assert not np.array_equal(found, grown(points, scores, queries, 20, derive(2)))
