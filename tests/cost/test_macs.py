import pytest
from numpy.random import default_rng
from tests.cost import slow_products as slow
from tests.cost.cases import CARDS, OPERATIONS

from formwright.arch.ops import Operation, OpGraph
from formwright.cost import input_size, macs
from formwright.cost.macs import operation_macs
from formwright.space.zoo import SPACES

SAMPLED = [name for name in SPACES.names() if not name.startswith("autobert-zero")]
WIDTHS = [(48, 48, (48, 7)), (48, 24, (40, 7)), (32, 96, (16, 11))]


@pytest.mark.parametrize("operation", OPERATIONS, ids=repr)
@pytest.mark.parametrize(("width", "output", "memory"), WIDTHS)
@pytest.mark.parametrize("length", [1, 13])
def test_an_operation_takes_the_products_one_can_list(
    operation: Operation, width: int, output: int, memory: tuple[int, int], length: int
) -> None:
    products = slow.operation_products(operation, width, output, length, slow.Memory(*memory))
    assert operation_macs(operation, width, output, length, memory) == slow.total(products)


@pytest.mark.parametrize("length", [1, 16, 100])
@pytest.mark.parametrize("name", CARDS)
def test_a_design_takes_the_products_one_can_list(name: str, length: int) -> None:
    assert macs(CARDS[name], length) == slow.total(slow.card_products(CARDS[name], length))


@pytest.mark.parametrize("name", SAMPLED)
def test_sampled_designs_take_the_products_one_can_list(name: str) -> None:
    space, rng = SPACES.get(name), default_rng(6)
    for length in (8, 30, 128):
        card = space.card(space.sample(rng, by="gene"))
        assert macs(card, length) == slow.total(slow.card_products(card, length))


def test_what_is_counted_over() -> None:
    assert macs(CARDS["plain"]) == macs(CARDS["plain"], 128) > macs(CARDS["plain"], 127)
    assert macs(CARDS["patches"], 5) == macs(CARDS["patches"], 500)
    assert macs(CARDS["image captions"], 5) < macs(CARDS["image captions"], 6)
    assert input_size(CARDS["plain"]) == "128 tokens"
    image = CARDS["patches"].encoder.embedding.image
    assert input_size(CARDS["patches"], 64) == f"{image} x {image} pixels"
    assert input_size(CARDS["image captions"], 64).endswith(" pixels and 64 tokens")
    assert input_size(CARDS["frames"], 64) == "64 frames"
    assert macs(CARDS["translation"]) == macs(CARDS["shared table"])


def test_a_part_of_an_attention_formula_that_occurs_twice_runs_once() -> None:
    scores = ("cosine", "Q", "K")
    formula = OpGraph(2, 3, ("add", ("matmul", scores, "V"), ("matmul", scores, "P")))
    maps = 4 * 7 * 6 * 6 + 7 * 6 * 6
    one_head = 7 * 3 * 7 + 2 * (7 * 7 * 3)
    assert operation_macs(formula, 6, 6, length=7) == maps + 2 * one_head
