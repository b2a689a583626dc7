import pytest
from numpy.random import default_rng

from formwright.arch.card import Card
from formwright.cost import params
from formwright.space import Fields
from formwright.space.zoo import load_card, load_space
from formwright.space.zoo.autoformer import TINY
from formwright.tasks import load_task
from formwright.train.prepare import prepare


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


def test_differences_from_the_paper() -> None:
    tables = 13 * 2 * 2 * 30 * 64  # layers, axes, keys and values
    assert (tables, f"{(params(TINY) - tables) / 1e6:.3f}") == (99_840, "5.768")
    space = load_space("autoformer-tiny")
    assert not space.contains(genotype(TINY))
    assert {layer.ratio for layer in genotype(TINY).layers} == {3, 3.5, 4}
    assert space.build(genotype(TINY)) == TINY


def test_the_nano_space_reads_digits() -> None:
    space = load_space("autoformer-nano")
    assert space.count() == 3 * (9 + 9**2 + 9**3 + 9**4)
    cards = [space.card(space.sample(default_rng(0))) for _ in range(5)]
    for card in cards:
        embedding = card.stacks[0].embedding
        assert (embedding.image, embedding.channels, embedding.tokens) == (8, 1, 17)
        assert prepare(load_task("digits"), card, 0).tokeniser is None
        for block in card.stacks[0].layers:
            assert block.mixer.relative.rows // 2 - 1 >= 3  # patches are at most 3 apart
