import pytest

from formwright.arch.block_order import BlockOrder
from formwright.arch.compute_blocks import INPUT, OUTPUT, ComputeBlock, Kind
from formwright.core.rng import derive
from formwright.space.zoo import load_space


def heads(kind: Kind, widths: tuple[int, int], options: tuple[int, int]) -> list[ComputeBlock]:
    return [ComputeBlock(kind, (width, width, width, option)) for width in widths for option in options]


@pytest.mark.parametrize(
    ("name", "widths", "feed_forward"),
    [
        ("flexibert", (128, 256), (512, 1024)),
        ("flexibert-s1star", (128, 256), (512, 1024)),
        ("flexibert-nano", (32, 64), (64, 128)),
    ],
)
def test_the_order_is_that_of_flexiberts_authors(
    name: str, widths: tuple[int, int], feed_forward: tuple[int, int]
) -> None:
    space, rng = load_space(name), derive(0, "order")
    order = BlockOrder.of([space.card(space.sample(rng)) for _ in range(200)])
    assert order.blocks == (
        INPUT,
        OUTPUT,
        ComputeBlock(Kind.ADD_NORM),
        *(ComputeBlock(Kind.FEED_FORWARD, (width,), "gelu") for width in feed_forward),
        *heads(Kind.TRANSFORM, widths, (0, 1)),  # dft, dct
        *heads(Kind.ATTENTION, widths, (0, 1)),  # sdp, wma
        *heads(Kind.DYNAMIC_CONVOLUTION, widths, (5, 9)),
    )
    assert [order.rank(block) for block in order.blocks] == list(range(17))


def test_an_unknown_block_counts_as_the_next_less_complex_one() -> None:
    known = tuple(ComputeBlock(Kind.FEED_FORWARD, (width,), "gelu") for width in (64, 128))
    order = BlockOrder((INPUT, OUTPUT, *known))
    assert order.rank(ComputeBlock(Kind.FEED_FORWARD, (100,), "gelu")) == order.rank(known[0]) == 2
    assert order.rank(ComputeBlock(Kind.ATTENTION, (9, 9, 9, 0))) == order.rank(known[1]) == 3
    assert order.rank(ComputeBlock(Kind.ADD_NORM)) == order.rank(OUTPUT) == 1


def test_no_cards_still_have_an_input_and_an_output() -> None:
    assert BlockOrder.of([]).blocks == (INPUT, OUTPUT)
