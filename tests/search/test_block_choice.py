import time
import tracemalloc
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formwright.core.errors import IllegalInput
from formwright.core.rng import derive
from formwright.search import block_choice
from formwright.search.block_choice import (
    Assembly,
    BlockCandidate,
    BlockProgram,
    Blocks,
    Floats,
    Level,
    Paths,
)


def one(loss: float, params: int, latency_ms: float = 1.0, width: int = 0) -> BlockCandidate:
    return BlockCandidate(loss, {"params": params, "latency_ms": latency_ms}, width)


def projection(block: int, below: int, above: int) -> Mapping[str, float]:
    """Say what a linear map between widths costs; into the first block it takes no time."""
    if below == above:
        return {}
    return {"params": (below + 1) * above} | ({} if block == 1 else {"latency_ms": 0.25})


def every(blocks: Blocks) -> list[Assembly]:
    """List all assemblies, the best first."""
    chosen = product(*(range(len(table)) for table in blocks.tables))
    return sorted(map(blocks.assembly, chosen), key=lambda assembly: assembly.loss)


@st.composite
def problems(draw: st.DrawFn) -> tuple[Blocks, dict[str, float], int]:
    """Draw small tables, limits that lie between what is least and what is most, and how many are wanted."""
    candidate = st.builds(
        one,
        st.integers(0, 40).map(lambda number: number / 16),  # sums of these are exact, and ties frequent
        st.integers(0, 3_000_000),
        st.integers(0, 64).map(lambda number: number / 8),
        st.sampled_from((2, 3, 5)),
    )
    tables = draw(st.lists(st.lists(candidate, min_size=1, max_size=4).map(tuple), min_size=1, max_size=4))
    blocks = Blocks(tuple(tables), draw(st.sampled_from((projection, Blocks(tuple(tables)).joint))))
    found = every(blocks)
    names = draw(st.sets(st.sampled_from(blocks.names)))
    limits = {name: draw(st.sampled_from([assembly.costs[name] for assembly in found])) for name in sorted(names)}
    return blocks, limits, draw(st.integers(1, 6))


@given(problems())
@settings(max_examples=60)
def test_choices_are_those_of_brute_force(problem: tuple[Blocks, dict[str, float], int]) -> None:
    blocks, limits, top = problem
    expected = [assembly for assembly in every(blocks) if assembly.keeps(limits)][:top]
    if not expected:
        with pytest.raises(IllegalInput, match="no assembly of blocks keeps"):
            blocks.best(limits, top)
        return
    blocks.refuse(limits)
    found = blocks.best(limits, top)
    assert [assembly.loss for assembly in found] == [assembly.loss for assembly in expected]
    assert len({assembly.chosen for assembly in found}) == len(found)
    for assembly in found:
        assert assembly == blocks.assembly(assembly.chosen)
        assert assembly.keeps(limits)


def table(rng: np.random.Generator, size: int, offset: float = 0.0) -> tuple[BlockCandidate, ...]:
    """Make a table like that of a trained block: the loss falls with the size, and is noisy."""
    widths = rng.choice((128, 192, 256, 384, 512), size)
    params = (widths**2 * rng.integers(3, 40, size)).tolist()
    loss = 1 / np.log(np.array(params)) + 0.01 * rng.random(size) + offset
    latency = np.array(params) * 1e-6 * (1 + 0.5 * rng.random(size))
    rows = zip(loss.tolist(), params, latency.tolist(), widths.tolist(), strict=True)
    return tuple(one(*row) for row in rows)


def test_real_numbers_and_joints_are_those_of_brute_force() -> None:
    rng = derive(0)
    for seed in range(3):
        blocks = Blocks((tuple(one(0.0, 30_522 * size, 0.0, size) for size in (64, 128)),
                         *(table(derive(seed, block), 6) for block in range(3))), projection)  # fmt: skip
        ordered = every(blocks)
        for _ in range(4):
            limits = {name: ordered[int(rng.integers(len(ordered)))].costs[name] for name in blocks.names}
            expected = [assembly for assembly in ordered if assembly.keeps(limits)][:5]
            if expected:
                assert [round(a.loss, 12) for a in blocks.best(limits, 5)] == [round(a.loss, 12) for a in expected]


def test_small_problems_by_hand() -> None:
    blocks = Blocks(((one(1.0, 9_000_000), one(0.0, 10_000_001)), (one(0.5, 9_999_999), one(0.0, 10_000_000))))
    assert blocks.best({"params": 20_000_001})[0].loss == 0.0
    # one parameter less, and the best choice is out
    assert blocks.best({"params": 20_000_000})[0].chosen == (1, 0)
    assert blocks.best({"params": 19_999_999})[0].chosen == (0, 1)
    blocks = Blocks(((one(0.5, 1), one(0.25, 9)), (one(0.5, 1), one(0.125, 7))))
    best, second = blocks.best({}, 2)
    assert best == Assembly((1, 1), 0.375, {"params": 16, "latency_ms": 2.0})
    assert second == Assembly((0, 1), 0.625, {"params": 8, "latency_ms": 2.0})
    blocks = Blocks(((one(0.5, 10, width=2), one(0.25, 10, width=4)), (one(0.0, 10, width=2),)), projection)
    assert blocks.best({"params": 29})[0] == Assembly((0, 0), 0.5, {"params": 20, "latency_ms": 2.0})
    assert blocks.best({"params": 30})[0] == Assembly((1, 0), 0.25, {"params": 30, "latency_ms": 2.0})
    blocks = Blocks(((one(0.5, 1), one(0.25, 9)), (one(0.5, 1),)))
    assert [assembly.chosen for assembly in blocks.best({}, 10)] == [(1, 0), (0, 0)]


def test_a_loss_that_every_candidate_has_does_not_hide_differences() -> None:
    blocks = Blocks(tuple(table(derive(1, block), 5, offset=1e6) for block in range(3)))
    assert blocks.best({}, 3)[0].chosen == every(blocks)[0].chosen


def test_limits_on_many_equal_candidates_are_looked_at_without_listing_them() -> None:
    same = tuple(one(0.0, 1_000 * width, 1.0, width) for width in range(1, 51))
    blocks = Blocks((same,) * 5, projection)  # 312 million assemblies
    blocks.refuse({"params": 20_000, "latency_ms": 6.0})
    with pytest.raises(IllegalInput, match=r"no assembly of blocks keeps params <= 4,999 \(they have 5,000 to"):
        blocks.refuse({"params": 4_999})


@pytest.mark.parametrize("ask", [Blocks.best, Blocks.refuse])
def test_limits_that_cannot_be_met_are_refused_with_what_can(ask: Callable[..., object]) -> None:
    fast, small = one(0.5, 2_000, 1.5), one(0.25, 1_000, 4.0)
    blocks = Blocks(((fast, small), (fast, small)))
    with pytest.raises(IllegalInput) as caught:
        ask(blocks, {"params": 1_500})
    assert str(caught.value) == (
        "no assembly of blocks keeps params <= 1,500 (they have 2,000 to 4,000). Raise a limit."
    )
    with pytest.raises(IllegalInput) as caught:
        ask(blocks, {"params": 2_500, "latency_ms": 5.5})
    assert str(caught.value) == (
        "no assembly of blocks keeps params <= 2,500 (they have 2,000 to 4,000, at least 3,000 within the other limits)"
        " and latency_ms <= 5.5 (they have 3 to 8, at least 8 within the other limits). Raise a limit."
    )


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: Blocks(()), "there must be a block"),
        (lambda: Blocks(((one(0, 1),), ())), "at least one candidate"),
        (
            lambda: Blocks(((one(0, 1), BlockCandidate(0.0, {"macs": 1})),)),
            "latency_ms, params or macs|macs or latency_ms",
        ),
        (lambda: replace(one(0, 1), loss=float("nan")), "the loss of a block's candidate must be finite"),
        (lambda: Blocks(((one(0, 1),),)).best({"macs": 3}), "no cost macs; .* latency_ms, params"),
        (lambda: Blocks(((one(0, 1),),)).best({"params": float("inf")}), "the limit on params must be a finite number"),
        (lambda: Blocks(((one(0, 1),),)).best({}, 0), "top is 0"),
    ],
)
def test_what_makes_no_sense_is_refused(wrong: Any, message: str) -> None:
    with pytest.raises(IllegalInput, match=message):
        wrong()


@pytest.mark.parametrize(("params", "latency_ms"), [(8_000_000, 10.0), (4_000_000, 6.0), (20_000_000, 9.0)])
def test_tables_of_the_published_size_are_quick_and_agree_with_the_integer_program(
    params: float, latency_ms: float
) -> None:
    blocks = Blocks(tuple(table(derive(2, block), 100) for block in range(4)), projection)
    limits = {"params": params, "latency_ms": latency_ms}
    began = time.process_time()
    found = blocks.best(limits, 10)
    assert time.process_time() - began < 5
    assert all(assembly.keeps(limits) for assembly in found)
    assert [assembly.loss for assembly in found] == sorted(assembly.loss for assembly in found)
    assert len({assembly.chosen for assembly in found}) == 10
    program = BlockProgram(blocks._levels(blocks.names), np.array([limits[name] for name in blocks.names]))
    chosen = program.choice(program.losses)
    assert chosen is not None
    assert found[0].loss == pytest.approx(blocks.assembly(chosen).loss, abs=1e-9)


def test_far_losses_do_not_make_the_lists_long() -> None:
    draw = derive(3)
    far = [100.0 * (draw.random() < 0.02) for _ in range(4 * 200)]
    sizes = draw.uniform(1, 10, len(far))
    all_of_them = [
        BlockCandidate(1 / size + 0.1 * draw.random() + more, {"params": size})
        for size, more in zip(sizes.tolist(), far, strict=True)
    ]
    blocks = Blocks(tuple(tuple(all_of_them[first : first + 200]) for first in range(0, len(far), 200)))
    tracemalloc.start()
    best = blocks.best({"params": 20.0}, top=3)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(best) == 3
    assert peak < 50e6


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


def every_path(drawn: list[Level]) -> list[tuple[tuple[int, ...], float, Floats]]:
    paths = product(*(range(len(level.losses)) for level in drawn))
    return [(path, *sums(drawn, path)) for path in paths]


@given(st.integers(0, 1000), st.lists(st.integers(1, 3), min_size=1, max_size=4), st.floats(0, 1), st.floats(0, 3))
def test_no_path_within_limits_and_loss_is_missed_whatever_the_prices(
    seed: int, sizes: list[int], share: float, price: float
) -> None:
    drawn = levels(seed, tuple(sizes))
    known = every_path(drawn)
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
    most = min(loss for _, loss, costs in every_path(drawn) if (costs <= limits).all())
    few = Paths(drawn, limits, np.array([0.6, 0.6])).up_to(most)
    many = Paths(drawn, limits, np.zeros(2)).up_to(most)
    assert 1 <= len(few) <= len(many)


def test_without_limits_every_loss_counts() -> None:
    drawn = levels(0, (3, 2), costs=0)
    paths = Paths(drawn, np.zeros(0), np.zeros(0))
    assert len(paths.up_to(paths.highest)) == 6
    assert paths.lowest == pytest.approx(min(loss for _, loss, _ in every_path(drawn)))


def test_many_paths_are_looked_at_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = levels(1, (5, 5, 5))
    whole = Paths(drawn, np.array([9.0, 9.0]), np.zeros(2)).up_to(1.5)
    monkeypatch.setattr(block_choice, "_AT_ONCE", 7)
    np.testing.assert_array_equal(Paths(drawn, np.array([9.0, 9.0]), np.zeros(2)).up_to(1.5), whole)
    assert len(whole) > 7


NOTHING = np.array([np.inf, np.inf])


@pytest.mark.parametrize("seed", range(6))
def test_a_choice_has_the_least_loss_within_limits(seed: int) -> None:
    drawn = levels(seed, (4, 5, 3))
    known = every_path(drawn)
    limits = np.quantile([costs for _, _, costs in known], 0.3, axis=0)
    program = BlockProgram(drawn, limits)
    within = [(loss, path) for path, loss, costs in known if (costs <= limits).all()]
    assert program.choice(program.losses) == (min(within)[1] if within else None)


def test_the_least_or_the_most_of_a_cost_or_no_choice() -> None:
    drawn = levels(9, (4, 5, 3))
    known = every_path(drawn)
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
        known = every_path(drawn)
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
