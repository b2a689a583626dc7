import numpy as np
import pytest
from tests.search.smooth import Smooth

from formwright.core.errors import IllegalInput
from formwright.core.records import Objective, Observation, Request, Spent
from formwright.search.fronts import hypervolume
from formwright.search.linas import Linas, _gains
from formwright.search.nsga2 import Nsga2
from formwright.search.scores import Scores
from formwright.search.unseen import Legal, anything
from formwright.space import Space
from formwright.testing.loop import run
from formwright.testing.searcher_contract import ACCURACY, SearcherContract
from formwright.testing.spaces import small

PARAMS = Objective.parse("params:min")


class TestLinas(SearcherContract):
    trials = 12

    def make(self, space: Space, objectives: tuple[Objective, ...], legal: Legal = anything) -> Linas:
        return Linas(space, objectives, legal, initial=5, population=8, generations=3)


def test_a_design_gains_what_it_adds_to_the_dominated_volume() -> None:
    known = Scores(np.array([[0.0, 1.0], [1.0, 0.0]]), np.zeros(2))
    rows = np.array([[0.5, 0.5], [0.9, 0.9], [-1.0, -1.0], [2.0, 2.0]])
    middle, edge, both, outside = _gains(known, rows)
    assert both > middle > edge > 0 > outside
    before = hypervolume(known.values, [1.1, 1.1], ["min", "min"])
    after = hypervolume(np.vstack((known.values, rows[:1])), [1.1, 1.1], ["min", "min"])
    assert middle == pytest.approx(after - before, abs=1e-6)


def test_designs_beyond_a_limit_are_no_part_of_the_front() -> None:
    broken = Scores(np.array([[0.0, 1.0], [1.0, 0.0], [-9.0, -9.0]]), np.array([0.0, 0.0, 2.0]))
    assert _gains(broken, np.array([[0.2, 0.2]]))[0] > 0


@pytest.mark.parametrize(
    ("options", "fault"),
    [({"population": 1}, "population is 1"), ({"explore": 2.0}, "explore is 2"), ({"initial": 0}, "initial")],
)
def test_impossible_options_are_refused(options: dict[str, float], fault: str) -> None:
    with pytest.raises(IllegalInput, match=fault):
        Linas(small(), (ACCURACY,), **options)  # type: ignore[arg-type]


class Both:
    """A smooth score that grows with what a design costs."""

    def __init__(self, space: Space) -> None:
        self.smooth = Smooth(space)

    def evaluate(self, request: Request, context: object) -> Observation:
        found = self.smooth.evaluate(request, context)  # type: ignore[arg-type]
        size = float(np.sum(self.smooth.space.encode(request.design)[::2]))
        return Observation({**found.metrics, "params": size}, Spent(0.0, 0))


@pytest.mark.slow
def test_it_needs_fewer_evaluations_than_nsga2() -> None:
    space = small()
    goals = (ACCURACY, PARAMS)

    def volume(searcher: Linas | Nsga2, trials: int, seed: int) -> float:
        history = run(searcher, Both(space), trials, seed)
        rows = [
            [trial.observation.metrics[goal.name] for goal in goals] for trial in history.finished if trial.observation
        ]
        return hypervolume(rows, [-5.0, 20.0], ["max", "min"])

    ours = [volume(Linas(space, goals, initial=8), 24, seed) for seed in range(3)]
    theirs = [volume(Nsga2(space, goals, population=8), 24, seed) for seed in range(3)]
    assert np.mean(ours) > np.mean(theirs)
