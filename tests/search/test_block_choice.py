import time
import tracemalloc
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formwright.core.errors import IllegalInput
from formwright.core.rng import derive
from formwright.search.block_choice import Assembly, BlockCandidate, Blocks, bins, rounds, survivors
from formwright.search.block_solver import BlockProgram


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


def test_bins() -> None:
    sizes = [[0], [24], [25], [49], [50], [99], [100]]
    assert bins(sizes, 4).tolist() == [0, 0, 1, 1, 2, 3, 3]
    costs = [[1, 1.0], [1, 9.0], [9, 1.0], [9, 9.0], [2, 2.0]]
    assert bins(costs, 2).tolist() == [0, 1, 2, 3, 0]
    assert bins([[1, 1.0], [9, 9.0]], 10).tolist() == [0, 1]  # cells that nobody is in have no number
    assert bins([[5, 1.0], [5, 2.0]], 2).tolist() == [0, 1]
    assert bins([[5], [5], [5]]).tolist() == [0, 0, 0]
    assert bins(np.zeros((0, 2))).tolist() == []


def test_survivors() -> None:
    losses = [0.4, 0.1, 0.3, 0.2, 9.0, 8.0, 7.0]
    assert survivors(losses, [0, 0, 0, 0, 1, 1, 1], least=1).tolist() == [
        False, True, False, True, False, True, True,
    ]  # fmt: skip
    losses = np.arange(30.0)
    of_bins = np.repeat([0, 1, 2], [15, 12, 3])
    stays = survivors(losses, of_bins)
    assert np.bincount(of_bins[stays]).tolist() == [10, 10, 3]
    assert stays[:10].all()
    assert not stays[10:15].any()
    losses = [0.4, np.nan, 0.3, np.nan, 0.2, 0.1]
    assert survivors(losses, [0] * 6, least=1).tolist() == [False, True, False, True, True, True]
    assert survivors([np.nan, np.nan], [0, 0], least=0).all()
    assert survivors([], []).tolist() == []
    assert survivors([np.inf, 0.5, np.inf, 0.5], [0] * 4, least=1).tolist() == [False, True, False, True]
    assert survivors([0.5, 0.5], [0, 0], least=1).tolist() == [True, False]


@given(st.lists(st.tuples(st.integers(0, 4), st.floats(0, 1) | st.none()), max_size=60), st.integers(0, 6))
def test_half_goes_and_nobody_who_stays_is_worse_than_one_who_went(
    rows: list[tuple[int, float | None]], least: int
) -> None:
    of_bins = np.array([one for one, _ in rows], dtype=np.intp)
    losses = np.array([np.nan if loss is None else loss for _, loss in rows], dtype=np.float64)
    stays = survivors(losses, of_bins, least)
    for number in set(of_bins.tolist()):
        inside = of_bins == number
        judged = inside & ~np.isnan(losses)
        gone = inside & ~stays
        assert gone.sum() == min(judged.sum() // 2, max(inside.sum() - least, 0))
        assert not (gone & ~judged).any()
        if gone.any():
            assert losses[gone].min() >= losses[judged & stays].max()


@pytest.mark.parametrize("least", [1, 10])
@pytest.mark.parametrize("candidates", [1, 2, 7, 10, 11, 100, 5_000])
def test_rounds_are_counted_right(candidates: int, least: int) -> None:
    left, rng = np.zeros(candidates, dtype=np.intp), derive(0)
    for _ in range(rounds(candidates, least)):
        assert len(left) > least
        left = left[survivors(rng.random(len(left)), left, least)]
    assert len(left) == min(candidates, least)


def test_a_whole_block_of_the_published_space_shrinks_in_no_time() -> None:
    rng = derive(1)
    costs = rng.random((233_280, 2))
    of_bins, losses = bins(costs), rng.random(len(costs))
    assert of_bins.max() == 99
    left = np.arange(len(costs))
    for _ in range(15):
        left = left[survivors(losses[left], of_bins[left])]
    assert np.bincount(of_bins[left]).tolist() == [10] * 100
    for number in (0, 57):
        inside = np.flatnonzero(of_bins == number)
        assert set(left[of_bins[left] == number]) == set(inside[np.argsort(losses[inside])[:10]])


def test_bins_and_losses_must_fit() -> None:
    with pytest.raises(IllegalInput, match=r"a row of finite costs for each candidate, not an array of shape \(3,\)"):
        bins([1, 2, 3])
    with pytest.raises(IllegalInput, match="parts is 0"):
        bins([[1]], 0)
    with pytest.raises(IllegalInput, match=r"losses of shape \(2,\) for bins of shape \(3,\)"):
        survivors([1, 2], [0, 0, 0])


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
