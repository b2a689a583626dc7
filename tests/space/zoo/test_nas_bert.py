import pytest

from formwright.arch.layers import Block, TokenEmbedding
from formwright.arch.ops import Attention, Identity, SeparableConvolution
from formwright.space import Fields
from formwright.space.zoo.nas_bert import BLOCK, NAS_BERT, candidate, candidates

CHAIN = ("attention", "feed-forward", "separable-3", "separable-5", "separable-7", "identity")


def test_published_counts() -> None:
    assert len(candidates()) == len(set(candidates())) == 26
    assert BLOCK.count() == 5 * 6**6 == 233_280
    assert NAS_BERT.count() == 5 * 233_280**4


@pytest.mark.parametrize(
    ("width", "heads", "hidden"), [(128, 2, 512), (192, 3, 768), (256, 4, 1024), (384, 6, 1536), (512, 8, 2048)]
)
def test_sizes_go_together_as_in_the_published_table(width: int, heads: int, hidden: int) -> None:
    assert candidate("attention", width) == Block(width, Attention(heads, 64))
    assert candidate("feed-forward", width) == Block(width, Identity(), (hidden,))


@pytest.mark.parametrize("kernel", [3, 5, 7])
def test_a_separable_convolution_is_stacked_twice(kernel: int) -> None:
    assert candidate(f"separable-{kernel}", 256) == Block(256, SeparableConvolution(kernel, stacked=2))


def test_every_candidate_makes_a_layer() -> None:
    layers = {candidate(operation, width or 128) for operation, width in candidates()}
    assert len(layers) == 26
    assert Block(128, Identity()) in layers


def design(embedding: int, *widths: int) -> Fields:
    return Fields.of(embedding=embedding, blocks=tuple(Fields.of(hidden=width, layers=CHAIN) for width in widths))


def test_a_design_is_four_blocks_of_six_layers() -> None:
    chosen = design(64, 128, 512, 512, 192)
    assert NAS_BERT.contains(chosen)
    stack = NAS_BERT.card(chosen).encoder
    assert stack is not None
    assert [layer.width for layer in stack.layers] == [128] * 6 + [512] * 12 + [192] * 6
    assert stack.projections == ((128, 512), (512, 192))


@pytest.mark.parametrize(("embedding", "factorised"), [(64, 64), (128, None), (512, 512)])
def test_an_embedding_of_another_width_is_factorised(embedding: int, factorised: int | None) -> None:
    stack = NAS_BERT.card(design(embedding, 128, 128, 128, 128)).encoder
    assert stack is not None
    assert stack.embedding == TokenEmbedding(30_522, 128, factorised=factorised, types=2)
