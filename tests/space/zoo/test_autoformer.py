from dataclasses import replace

import pytest
from numpy.random import default_rng

from formwright.arch.card import Card
from formwright.cost import params
from formwright.space import Fields
from formwright.space.zoo import load_card, load_space
from formwright.space.zoo.autoformer import TINY
from formwright.tasks import load_task
from formwright.train.prepare import prepare


def genotype(card: Card) -> Fields:
    """Read the genes of a vision transformer off its card."""
    layers = []
    for block in card.stacks[0].layers:
        layers.append(Fields.of(heads=block.mixer.heads, ratio=block.feed_forward[0] / block.width))
    return Fields.of(width=card.stacks[0].layers[0].width, layers=tuple(layers))


@pytest.mark.parametrize("size", ["small", "base"])
def test_the_winner_lies_in_its_own_space(size: str) -> None:
    space, winner = load_space(f"autoformer-{size}"), load_card(f"autoformer-{size[0]}")
    assert space.contains(genotype(winner))
    assert space.card(genotype(winner)) == winner


# heads and ratios of the authors' configuration, layer by layer
ORDERS = {
    "t": ("3 3 3 3 3 3 3 3 3 3 4 3 3", "3.5 3.5 3 3.5 3 3 4 4 3.5 4 3.5 4 3.5"),
    "s": ("6 6 5 7 5 5 5 6 6 7 7 6 7", "3 3.5 3 3.5 4 4 4 4 4 4 4 3.5 4"),
    "b": ("9 9 9 9 9 10 9 9 10 9 10 9 9 10", "3.5 3.5 4 3.5 4 3.5 3.5 3 4 4 3 4 3 3.5"),
}


@pytest.mark.parametrize("size", ORDERS)
def test_the_order_of_heads_and_ratios_is_the_authors(size: str) -> None:
    layers = genotype(load_card(f"autoformer-{size}")).layers
    heads, ratios = ([float(one) for one in row.split()] for row in ORDERS[size])
    assert ([layer.heads for layer in layers], [layer.ratio for layer in layers]) == (heads, ratios)


@pytest.mark.parametrize("size", ["t", "s", "b"])
def test_models_of_tf_tas_lie_in_the_spaces_of_autoformer(size: str) -> None:
    whole = {"t": "tiny", "s": "small", "b": "base"}[size]
    card, space = load_card(f"tf-tas-{size}"), load_space(f"autoformer-{whole}")
    assert space.contains(genotype(card))
    assert space.card(genotype(card)) == card


@pytest.mark.parametrize(
    ("name", "whole", "without"), [("tf-tas-t", 6_200_776, 6_100_936), ("autoformer-t", 5_867_944, 5_768_104)]
)
def test_sizes_without_relative_positions(name: str, whole: int, without: int) -> None:
    card = load_card(name)
    layers = tuple(replace(block, mixer=replace(block.mixer, relative=None)) for block in card.encoder.layers)
    plain = replace(card, encoder=replace(card.encoder, layers=layers))
    assert (params(card), params(plain)) == (whole, without)


def test_differences_from_the_paper() -> None:
    tables = 13 * 2 * 2 * 30 * 64  # layers, axes, keys and values
    assert (tables, f"{(params(TINY) - tables) / 1e6:.3f}") == (99_840, "5.768")
    space = load_space("autoformer-tiny")
    assert not space.contains(genotype(TINY))
    assert {layer.ratio for layer in genotype(TINY).layers} == {3, 3.5, 4}
    assert space.build(genotype(TINY)) == TINY


@pytest.mark.parametrize(("name", "pixels", "channels"), [("nano-28", 28, 1), ("nano-32", 32, 3)])
def test_nano_spaces_read_larger_pictures(name: str, pixels: int, channels: int) -> None:
    space = load_space(f"autoformer-{name}")
    assert space.count() == 3 * (9 + 9**2 + 9**3 + 9**4)
    for design in (space.sample(default_rng(seed), "gene") for seed in range(5)):
        stack = space.card(design).encoder
        assert (stack.embedding.image, stack.embedding.channels) == (pixels, channels)
        side = pixels // stack.embedding.patch
        assert all(block.mixer.relative.rows // 2 - 1 >= side - 1 for block in stack.layers)


def test_the_nano_space_reads_digits() -> None:
    space = load_space("autoformer-nano")
    assert space.count() == 3 * (9 + 9**2 + 9**3 + 9**4)
    cards = [space.card(space.sample(default_rng(0))) for _ in range(5)]
    for card in cards:
        embedding = card.stacks[0].embedding
        assert (embedding.image, embedding.channels, embedding.tokens) == (8, 1, 17)
        assert len(prepare(load_task("digits"), card, 0).train.examples) == 1_197
        for block in card.stacks[0].layers:
            assert block.mixer.relative.rows // 2 - 1 >= 3  # patches are at most 3 apart
