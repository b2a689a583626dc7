import numpy as np
import pytest
from tests.search.test_block_paths import every, levels

from formwright.search.block_paths import Paths
from formwright.search.block_program import Program

NOTHING = np.array([np.inf, np.inf])


@pytest.mark.parametrize("seed", range(6))
def test_a_choice_has_the_least_loss_within_limits(seed: int) -> None:
    drawn = levels(seed, (4, 5, 3))
    known = every(drawn)
    limits = np.quantile([costs for _, _, costs in known], 0.3, axis=0)
    program = Program(drawn, limits)
    within = [(loss, path) for path, loss, costs in known if (costs <= limits).all()]
    assert program.choice(program.losses) == (min(within)[1] if within else None)


def test_a_choice_has_the_least_or_the_most_of_a_cost() -> None:
    drawn = levels(9, (4, 5, 3))
    known = every(drawn)
    program = Program(drawn, NOTHING)
    for cost in range(2):
        ordered = sorted(known, key=lambda one: one[2][cost])
        assert program.choice(program.costs[cost]) == ordered[0][0]
        assert program.choice(-program.costs[cost]) == ordered[-1][0]


def test_there_may_be_no_choice() -> None:
    program = Program(levels(0, (2, 2)), np.array([-1.0, 5.0]))
    assert program.choice(program.losses) is None
    assert program.prices().tolist() == [0.0, 0.0]


def test_prices_raise_the_lower_bound() -> None:
    raised = 0
    for seed in range(5):
        drawn = levels(seed, (6, 6, 6))
        known = every(drawn)
        limits = np.quantile([costs for _, _, costs in known], 0.2, axis=0)
        prices = Program(drawn, limits).prices()
        assert (prices >= 0).all()
        best = min((loss for _, loss, costs in known if (costs <= limits).all()), default=np.inf)
        bounds = [Paths(drawn, limits, some).lowest for some in (np.zeros(2), prices)]
        assert bounds[0] - 1e-9 <= bounds[1] <= best + 1e-9
        raised += bounds[1] > bounds[0] + 0.01
    assert raised >= 3


def test_one_level_has_no_joints() -> None:
    drawn = levels(2, (5,))
    program = Program(drawn, NOTHING)
    assert program.choice(program.losses) == (int(np.argmin(drawn[0].losses)),)


def test_equal_losses_are_no_trouble() -> None:
    drawn = levels(4, (3, 3))
    for level in drawn:
        level.losses[:] = 0.0
    program = Program(drawn, NOTHING)
    assert program.choice(program.losses) is not None
