from dataclasses import asdict, replace

import pytest

from formwright.arch.card import Card
from formwright.arch.layers import Block, PatchEmbedding, Stack, TokenEmbedding
from formwright.arch.ops import Attention, CrossAttention, Transform
from formwright.core.rng import derive
from formwright.cost import params
from formwright.nn.build import build
from formwright.pipeline.baseline import plain_design
from formwright.space.zoo import load_space

TOKENS = TokenEmbedding(100, 24, factorised=8, positions="sinusoidal", length=32, types=2)
PATCHES = PatchEmbedding(8, 4, 24, channels=1)
LAYERS = (Block(24, Transform("dft"), (40, 8)), Block(24, Attention(3, 8, "wma"), (16,)))
ENCODER = Card(encoder=Stack(TOKENS, LAYERS))
DECODER = Card(decoder=Stack(TOKENS, LAYERS[1:], causal=True))
VISION = Card(encoder=Stack(PATCHES, LAYERS[1:]))


@pytest.mark.parametrize("card", [ENCODER, DECODER, VISION], ids=lambda card: str(card.family))
def test_the_plain_counterpart_reads_the_same_and_is_as_deep(card: Card) -> None:
    plain = plain_design(card)
    (stack,), (before,) = plain.stacks, card.stacks
    width = stack.embedding.width
    assert plain.family == card.family
    assert (len(stack.layers), stack.causal) == (len(before.layers), before.causal)
    assert set(stack.layers) == {Block(width, Attention(width // 16, 16), (4 * width,))}
    changed = {"width": width, "positions": "learned", "factorised": None}
    expected = {name: changed.get(name, value) for name, value in asdict(before.embedding).items()}
    assert asdict(stack.embedding) == expected


@pytest.mark.parametrize("card", [ENCODER, DECODER, VISION], ids=lambda card: str(card.family))
def test_the_plain_counterpart_can_be_built_and_is_the_narrowest_of_no_smaller_size(card: Card) -> None:
    plain = plain_design(card)
    assert params(plain) >= params(card)
    assert sum(weights.numel() for weights in build(plain).parameters()) == params(plain)
    (stack,) = plain.stacks
    width = stack.embedding.width - 16
    if width:
        layers = tuple(Block(width, Attention(width // 16, 16), (4 * width,)) for _ in stack.layers)
        narrower = Stack(replace(stack.embedding, width=width), layers, causal=stack.causal)
        smaller = Card(encoder=narrower) if card.encoder is not None else Card(decoder=narrower)
        assert params(smaller) < params(card)


@pytest.mark.parametrize("name", ["flexibert-nano", "autoformer-tiny", "nas-bert", "lighthubert-small"])
def test_designs_of_published_spaces_have_plain_counterparts(name: str) -> None:
    space, rng = load_space(name), derive(0, "baseline")
    for _ in range(3):
        card = space.card(space.sample(rng))
        assert params(plain_design(card)) >= params(card)


def test_a_plain_design_is_its_own_counterpart() -> None:
    plain = plain_design(ENCODER)
    assert plain_design(plain) == plain


@pytest.mark.parametrize("name", ["hat", "evolved-transformer-nano"])
def test_the_counterpart_of_an_encoder_with_a_decoder_attends_to_its_encoder(name: str) -> None:
    space = load_space(name)
    card = space.card(space.sample(derive(0)))
    plain = plain_design(card)
    assert plain.family == "encoder-decoder"
    assert params(plain) >= params(card)
    assert plain.share_embedding == card.share_embedding
    assert [len(stack.layers) for stack in plain.stacks] == [len(stack.layers) for stack in card.stacks]
    below, above = (stack.layers[0] for stack in plain.stacks)
    assert isinstance(below, Block)
    assert isinstance(above, Block)
    assert (below.cross, above.cross) == (None, CrossAttention(above.width // 16, 16))
