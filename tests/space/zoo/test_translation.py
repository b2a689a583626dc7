import pytest

from formwright.arch.ops import CrossAttention, Identity
from formwright.cost import params, params_body
from formwright.space.zoo import load_card
from formwright.space.zoo.translation import decoder_cell, encoder_cell


@pytest.mark.parametrize(("size", "published"), [("base", "2.92M"), ("big", "11.34M")])
def test_published_differences_of_the_bodies(size: str, published: str) -> None:
    evolved, plain = load_card(f"evolved-transformer-{size}"), load_card(f"transformer-{size}")
    assert f"{(params_body(evolved) - params_body(plain)) / 1e6:.2f}M" == published


@pytest.mark.parametrize(("name", "published"), [("evolved-transformer-base", "47.02"), ("transformer-base", "44.10")])
def test_published_bodies(name: str, published: str) -> None:
    assert f"{params_body(load_card(name)) / 1e6:.2f}" == published


@pytest.mark.parametrize(("size", "width"), [("base", 512), ("big", 1024)])
def test_three_encoder_cells_and_four_decoder_cells(size: str, width: int) -> None:
    encoder, decoder = load_card(f"evolved-transformer-{size}").stacks
    assert (len(encoder.layers), len(decoder.layers)) == (3, 4)
    for layer in (*encoder.layers, *decoder.layers):
        assert layer.width == layer.output_width == width


def test_published_cells() -> None:
    assert (len(encoder_cell(512, 8).junctions), len(decoder_cell(512, 8).junctions)) == (6, 8)
    for heads, parallel in [(4, 8), (8, 16), (16, 16)]:
        first = decoder_cell(512, heads).junctions[0].left.operation
        assert first.heads == parallel  # type: ignore[union-attr]


@pytest.mark.parametrize("size", ["base", "big", "tiny"])
@pytest.mark.parametrize("family", ["transformer", "evolved-transformer"])
def test_encoder_and_decoder_share_their_token_table(family: str, size: str) -> None:
    card = load_card(f"{family}-{size}")
    assert card.share_embedding
    assert card.family == "encoder-decoder"
    assert [stack.final_norm for stack in card.stacks] == [True, True]
    assert size != "tiny" or 200_000 < params(card) < 500_000


def test_a_writer_has_the_decoders_cell_without_what_attends_to_an_encoder() -> None:
    card, whole = load_card("evolved-transformer-writer-tiny"), decoder_cell(64, 4)
    assert card.family == "decoder"
    (cell,) = card.stacks[0].layers
    left = [branch.operation for junction in cell.junctions for branch in junction.branches]
    kept = [branch.operation for junction in whole.junctions for branch in junction.branches]
    trainable = [operation for operation in kept if not isinstance(operation, CrossAttention | Identity)]
    assert [operation for operation in left if not isinstance(operation, Identity)] == trainable
