import pytest

from formwright.arch.card import Card
from formwright.arch.layers import Block
from formwright.arch.ops import Attention
from formwright.cost import params
from formwright.space import Fields
from formwright.space.zoo import load_card, load_space
from formwright.space.zoo.autoformer import TINY


@pytest.mark.parametrize(
    ("size", "count", "printed"),
    [
        ("tiny", 3 * (4**12 + 4**13 + 4**14), "1.057e+09"),
        ("small", 3 * (9**12 + 9**13 + 9**14), "7.71e+13"),
        ("base", 3 * (6**14 + 6**15 + 6**16), "1.01e+13"),
    ],
)
def test_published_counts(size: str, count: int, printed: str) -> None:
    assert load_space(f"autoformer-{size}").count() == count
    digits = len(printed.split("e", maxsplit=1)[0]) - 2
    assert f"{count:.{digits}e}" == printed


@pytest.mark.parametrize(
    ("name", "published"),
    [
        ("autoformer-t", 5_867_944),
        ("autoformer-s", 22_891_432),
        ("autoformer-b", 53_691_688),
        ("autoformer-supernet-t", 11_669_224),
    ],
)
def test_published_parameters(name: str, published: int) -> None:
    assert params(load_card(name)) == published


def test_the_paper_leaves_relative_positions_out() -> None:
    tables = 13 * 2 * 2 * 30 * 64  # layers, axes, keys and values
    assert tables == 99_840
    assert f"{(params(TINY) - tables) / 1e6:.3f}" == "5.768"


def genotype(card: Card) -> Fields:
    """Read the genes of a vision transformer off its card."""
    layers = []
    for block in card.stacks[0].layers:
        assert isinstance(block, Block)
        assert isinstance(block.mixer, Attention)
        layers.append(Fields.of(heads=block.mixer.heads, ratio=block.feed_forward[0] / block.width))
    return Fields.of(width=card.stacks[0].layers[0].width, layers=tuple(layers))


@pytest.mark.parametrize("size", ["small", "base"])
def test_the_winner_lies_in_its_own_space(size: str) -> None:
    space, winner = load_space(f"autoformer-{size}"), load_card(f"autoformer-{size[0]}")
    assert space.contains(genotype(winner))
    assert space.card(genotype(winner)) == winner


def test_the_tiny_winner_has_a_ratio_that_its_space_does_not_hold() -> None:
    space = load_space("autoformer-tiny")
    assert not space.contains(genotype(TINY))
    assert {layer.ratio for layer in genotype(TINY).layers} == {3, 3.5, 4}
    assert space.build(genotype(TINY)) == TINY
