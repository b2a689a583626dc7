"""What chains cost: the sums are what the whole card costs, and the ends of the range are the ends."""

from itertools import pairwise, product

import pytest
from tests.pipeline.block_runs import pretended
from tests.supernet.lessons import MENU

from formwright.cost import params
from formwright.nn.part_latency import measured_operations
from formwright.search.chain_costs import PartCosts, blocks_of, untimed
from formwright.search.model_sizes import LATENCY, PARAMS
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
