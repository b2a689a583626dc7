from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formwright.core.rng import derive
from formwright.search import block_solver
from formwright.search.block_solver import BlockProgram, Floats, Level, Paths


def levels(seed: int, sizes: tuple[int, ...], costs: int = 2) -> list[Level]:
    """Draw levels whose candidates have two widths."""
    rng = derive(seed)
    return [
        Level(
            rng.random(size),
            rng.random((size, costs)),
            rng.integers(0, 2, size),
            rng.random((2, 2, costs)) if number else np.zeros((1, 2, costs)),
        )
        for number, size in enumerate(sizes)
    ]


def sums(drawn: list[Level], path: tuple[int, ...]) -> tuple[float, Floats]:
    """Sum up the loss and the costs of a path, one by one."""
    places = list(zip(drawn, path, strict=True))
    costs = np.sum([level.costs[place] for level, place in places], axis=0)
    for (below, low), (above, high) in pairwise(places):
        costs = costs + above.joints[below.widths[low], above.widths[high]]
    return float(sum(level.losses[place] for level, place in places)), costs


def every(drawn: list[Level]) -> list[tuple[tuple[int, ...], float, Floats]]:
    paths = product(*(range(len(level.losses)) for level in drawn))
    return [(path, *sums(drawn, path)) for path in paths]


@given(st.integers(0, 1000), st.lists(st.integers(1, 3), min_size=1, max_size=4), st.floats(0, 1), st.floats(0, 3))
def test_no_path_within_limits_and_loss_is_missed_whatever_the_prices(
    seed: int, sizes: list[int], share: float, price: float
) -> None:
    drawn = levels(seed, tuple(sizes))
    known = every(drawn)
    limits = np.quantile([costs for _, _, costs in known], share, axis=0)
    paths = Paths(drawn, limits, np.array([price, 0.5 * price]))
    within = {path: loss for path, loss, costs in known if (costs <= limits).all()}
    assert all(paths.lowest <= loss + 1e-9 and loss <= paths.highest + 1e-9 for loss in within.values())
    for most in (paths.lowest, float(np.median([loss for _, loss, _ in known])), paths.highest):
        found = {tuple(path) for path in paths.up_to(most).tolist()}
        assert {path for path, loss in within.items() if loss <= most} <= found
        # what is listed is within the limits, up to rounding
        assert all((sums(drawn, path)[1] <= limits + 1e-6).all() for path in found)


def test_good_prices_leave_few_paths() -> None:
    drawn = levels(3, (12, 12, 12))
    limits = np.array([2.0, 2.0])
    most = min(loss for _, loss, costs in every(drawn) if (costs <= limits).all())
    few = Paths(drawn, limits, np.array([0.6, 0.6])).up_to(most)
    many = Paths(drawn, limits, np.zeros(2)).up_to(most)
    assert 1 <= len(few) <= len(many)


def test_without_limits_every_loss_counts() -> None:
    drawn = levels(0, (3, 2), costs=0)
    paths = Paths(drawn, np.zeros(0), np.zeros(0))
    assert len(paths.up_to(paths.highest)) == 6
    assert paths.lowest == pytest.approx(min(loss for _, loss, _ in every(drawn)))


def test_many_paths_are_looked_at_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = levels(1, (5, 5, 5))
    whole = Paths(drawn, np.array([9.0, 9.0]), np.zeros(2)).up_to(1.5)
    monkeypatch.setattr(block_solver, "_AT_ONCE", 7)
    np.testing.assert_array_equal(Paths(drawn, np.array([9.0, 9.0]), np.zeros(2)).up_to(1.5), whole)
    assert len(whole) > 7


NOTHING = np.array([np.inf, np.inf])


@pytest.mark.parametrize("seed", range(6))
def test_a_choice_has_the_least_loss_within_limits(seed: int) -> None:
    drawn = levels(seed, (4, 5, 3))
    known = every(drawn)
    limits = np.quantile([costs for _, _, costs in known], 0.3, axis=0)
    program = BlockProgram(drawn, limits)
    within = [(loss, path) for path, loss, costs in known if (costs <= limits).all()]
    assert program.choice(program.losses) == (min(within)[1] if within else None)


def test_the_least_or_the_most_of_a_cost_or_no_choice() -> None:
    drawn = levels(9, (4, 5, 3))
    known = every(drawn)
    program = BlockProgram(drawn, NOTHING)
    for cost in range(2):
        ordered = sorted(known, key=lambda one: one[2][cost])
        assert program.choice(program.costs[cost]) == ordered[0][0]
        assert program.choice(-program.costs[cost]) == ordered[-1][0]
    program = BlockProgram(levels(0, (2, 2)), np.array([-1.0, 5.0]))
    assert program.choice(program.losses) is None
    assert program.prices().tolist() == [0.0, 0.0]


def test_prices_raise_the_lower_bound() -> None:
    raised = 0
    for seed in range(5):
        drawn = levels(seed, (6, 6, 6))
        known = every(drawn)
        limits = np.quantile([costs for _, _, costs in known], 0.2, axis=0)
        prices = BlockProgram(drawn, limits).prices()
        assert (prices >= 0).all()
        best = min((loss for _, loss, costs in known if (costs <= limits).all()), default=np.inf)
        bounds = [Paths(drawn, limits, some).lowest for some in (np.zeros(2), prices)]
        assert bounds[0] - 1e-9 <= bounds[1] <= best + 1e-9
        raised += bounds[1] > bounds[0] + 0.01
    assert raised >= 3


def test_one_level_or_equal_losses() -> None:
    drawn = levels(2, (5,))
    program = BlockProgram(drawn, NOTHING)
    assert program.choice(program.losses) == (int(np.argmin(drawn[0].losses)),)
    drawn = levels(4, (3, 3))
    for level in drawn:
        level.losses[:] = 0.0
    program = BlockProgram(drawn, NOTHING)
    assert program.choice(program.losses) is not None
