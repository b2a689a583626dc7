import pytest

from formwright.arch.embeddings import FrameEmbedding
from formwright.arch.layers import Block
from formwright.arch.ops import Attention
from formwright.cost import params
from formwright.space import Fields
from formwright.space.zoo import load_space
from formwright.space.zoo.lighthubert import BASE


def design(width: int, heads: int, ratio: float, depth: int) -> Fields:
    return Fields.of(width=width, layers=(Fields.of(heads=heads, ratio=ratio),) * depth)


@pytest.mark.parametrize(
    ("size", "chosen", "published"),
    [
        ("small", design(256, 4, 3.0, 10), 11_449_088),
        ("small", design(512, 8, 4.0, 12), 44_398_336),
        ("base", design(512, 8, 3.5, 12), 41_249_536),
        ("base", design(768, 12, 4.0, 12), 94_377_728),
    ],
)
def test_published_sizes(size: str, chosen: Fields, published: int) -> None:
    space = load_space(f"lighthubert-{size}")
    assert space.contains(chosen)
    card = space.card(chosen)
    assert params(card) == published
    assert card.encoder.final_norm


def test_the_nano_space_reads_frames_and_counts_what_it_has() -> None:
    space = load_space("lighthubert-nano")
    card = space.card(design(48, 2, 2.0, 3))
    assert (card.encoder.embedding.features, card.encoder.embedding.length, card.idle) == (40, 128, 0)


def test_genes_become_layers() -> None:
    layers = tuple(Fields.of(heads=heads, ratio=ratio) for heads, ratio in [(8, 3.5), (12, 4.0)] * 6)
    chosen = Fields.of(width=640, layers=layers)
    assert BASE.contains(chosen)
    stack = BASE.card(chosen).encoder
    assert stack.embedding == FrameEmbedding(512, 640, positions="sinusoidal")
    assert stack.layers[:2] == (Block(640, Attention(8, 64), (2240,)), Block(640, Attention(12, 64), (2560,)))
