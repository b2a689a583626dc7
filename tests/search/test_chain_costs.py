"""What chains cost: the sums are what the whole card costs, and the ends of the range are the ends."""

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.pipeline.block_runs import pretended
from tests.supernet.lessons import MENU

from formwright.core.errors import IllegalInput
from formwright.core.rng import derive
from formwright.cost import LATENCY, params
from formwright.nn.latency import measured_operations
from formwright.search.chain_costs import (
    PARAMS,
    PartCosts,
    Size,
    amount,
    bins,
    blocks_of,
    check_range,
    exceeded,
    parse_sizes,
    survivors,
    untimed,
)
from formwright.space.zoo.chains import Chain, chain_card, chains

COSTS = PartCosts(MENU, measured_operations(MENU, measured=pretended))


def added(costs: PartCosts, table: int, blocks: list[Chain], name: str) -> float:
    widths = [table, *(block.width for block in blocks)]
    joints = sum(costs.joint(number, *pair)[name] for number, pair in enumerate(pairwise(widths), 1))
    return costs.embedding(table)[name] + joints + sum(costs.chain(block)[name] for block in blocks)


@pytest.mark.parametrize("table", MENU.embeddings)
def test_sums_of_parameters_are_exact(table: int) -> None:
    found = list(chains(MENU))
    for first, second in zip(found[::11], found[5::11], strict=False):
        assert added(COSTS, table, [first, second], PARAMS) == params(chain_card(MENU, table, [first, second]))


@pytest.mark.parametrize("name", [PARAMS, LATENCY])
def test_the_range_is_that_of_all_chains(name: str) -> None:
    costs = {width: [COSTS.chain(one)[name] for one in chains(MENU) if one.width == width] for width in MENU.widths}
    every = [
        COSTS.embedding(table)[name]
        + COSTS.joint(1, table, first)[name]
        + end(costs[first])
        + COSTS.joint(2, first, second)[name]
        + end(costs[second])
        for table, first, second, end in product(MENU.embeddings, MENU.widths, MENU.widths, (min, max))
    ]
    assert COSTS.extremes(name) == pytest.approx((min(every), max(every)))


def test_ends_of_the_range() -> None:
    assert untimed(MENU).extremes(PARAMS) == COSTS.extremes(PARAMS)
    assert untimed(MENU).extremes(LATENCY) == (0.0, 0.0)
    blocks = blocks_of(COSTS, dict.fromkeys(MENU.embeddings, 0.0), [COSTS.shortest] * MENU.blocks)
    least, _ = COSTS.extremes(PARAMS)
    assert blocks.best({PARAMS: least})[0].costs[PARAMS] == least


@pytest.mark.parametrize(
    ("text", "limits", "name"),
    [
        ("5M", {PARAMS: 5e6}, "5m"),
        (" 1.5m ", {PARAMS: 1.5e6}, "1.5m"),
        ("800k", {PARAMS: 8e5}, "800k"),
        ("123456", {PARAMS: 123456.0}, "123456"),
        ("8ms", {LATENCY: 8.0}, "8ms"),
        ("params<=5M", {PARAMS: 5e6}, "5m"),
        ("latency_ms<=8", {LATENCY: 8.0}, "8ms"),
        ("params = 10M @ latency_ms<=8.5 ms", {PARAMS: 1e7, LATENCY: 8.5}, "10m-8.5ms"),
        ("10M@8.5ms", {PARAMS: 1e7, LATENCY: 8.5}, "10m-8.5ms"),
    ],
)
def test_sizes_are_read(text: str, limits: dict[str, float], name: str) -> None:
    assert Size.parse(text) == Size(name, limits)
    assert Size.parse(name) == Size(name, limits)  # a folder's name says what was asked for


def test_limits_that_are_not_kept_are_named() -> None:
    size = Size.parse("10M@8ms")
    assert exceeded(size, {PARAMS: 1e7, LATENCY: 8.0}) == []
    assert exceeded(size, {PARAMS: 1e7 + 1, LATENCY: 8.1}) == [PARAMS, LATENCY]
    assert exceeded(size, {LATENCY: 9.0}) == [LATENCY]


@pytest.mark.parametrize("text", ["", "M", "-5M", "0M", "5M@5M", "8ms@9ms", "5M@", "5M 10M", "nan", "5%", "params>=5"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(IllegalInput, match="write 5M"):
        Size.parse(text)


def test_a_list_of_sizes() -> None:
    assert [size.name for size in parse_sizes(["5M", "10M", " 15M"])] == ["5m", "10m", "15m"]
    for texts, why in (([], "--sizes 5M,10M,15M"), (["5M", "5m"], "twice")):
        with pytest.raises(IllegalInput, match=why):
            parse_sizes(texts)


@pytest.mark.parametrize("text", ["5M,5000k", "3k,3000", "1.1M,1100k", "10M@8ms,8ms@10M"])
def test_one_size_in_two_spellings_is_refused(text: str) -> None:
    with pytest.raises(IllegalInput, match="twice"):
        parse_sizes(text.split(","))


def test_sizes_out_of_reach_are_refused_with_the_range() -> None:
    sizes = parse_sizes(["5M", "2M"])
    check_range(sizes, PARAMS, 2e6, 5e6)
    check_range(sizes, LATENCY, 100.0, 200.0)  # none is in milliseconds
    with pytest.raises(
        IllegalInput, match=r"the size 2m cannot be met: with this model, sizes reach from 2\.01M to 9\.5M"
    ):
        check_range(sizes, PARAMS, 2.0000001e6, 9.509e6)


@given(st.floats(1.0, 1e9), st.floats(1.0, 1e9))
def test_the_range_that_is_told_can_be_asked_for(first: float, second: float) -> None:
    least, most = min(first, second), 1000 + 2 * max(first, second)
    for told in (amount(PARAMS, least, up=True), amount(PARAMS, most)):
        check_range([Size.parse(told)], PARAMS, least, most)


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
