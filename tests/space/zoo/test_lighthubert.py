import pytest

from formwright.arch.layers import Block, FrameEmbedding
from formwright.arch.ops import Attention
from formwright.cost import params
from formwright.space import Fields
from formwright.space.zoo import load_space
from formwright.space.zoo.lighthubert import BASE


def design(width: int, heads: int, ratio: float, depth: int) -> Fields:
    return Fields.of(width=width, layers=(Fields.of(heads=heads, ratio=ratio),) * depth)


@pytest.mark.parametrize(
    ("size", "least", "most", "published"),
    [
        ("small", design(256, 4, 3.0, 10), design(512, 8, 4.0, 12), (11, 45)),
        ("base", design(512, 8, 3.5, 12), design(768, 12, 4.0, 12), (41, 95)),
    ],
)
def test_published_range_of_parameters(size: str, least: Fields, most: Fields, published: tuple[int, int]) -> None:
    space = load_space(f"lighthubert-{size}")
    for chosen, millions in zip((least, most), published, strict=True):
        assert space.contains(chosen)
        # the front end, about 4 million convolutions and a positional convolution as wide as the model, is not in cards
        front = 4.2 + 8 * chosen.width**2 / 1e6
        assert params(space.card(chosen)) / 1e6 + front == pytest.approx(millions, abs=0.7)


def test_genes_become_layers() -> None:
    layers = tuple(Fields.of(heads=heads, ratio=ratio) for heads, ratio in [(8, 3.5), (12, 4.0)] * 6)
    chosen = Fields.of(width=640, layers=layers)
    assert BASE.contains(chosen)
    stack = BASE.card(chosen).encoder
    assert stack.embedding == FrameEmbedding(512, 640, positions="sinusoidal")
    assert stack.layers[:2] == (Block(640, Attention(8, 64), (2240,)), Block(640, Attention(12, 64), (2560,)))
