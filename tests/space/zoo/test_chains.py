"""Chains of one-operation layers: how many there are, what they become, and how they are scaled to a teacher."""

from dataclasses import replace
from itertools import pairwise

import pytest

from formwright.arch.card import Card
from formwright.arch.embeddings import PatchEmbedding, TokenEmbedding
from formwright.arch.layers import Block, Stack
from formwright.arch.ops import Attention, Identity, SeparableConvolution
from formwright.core.errors import IllegalInput
from formwright.cost import params
from formwright.space.zoo import CARDS
from formwright.space.zoo.chains import REAL, Chain, boundaries, candidate, chain_card, chains, kind_of, scaled
from formwright.space.zoo.nas_bert import PUBLISHED


def teacher(width: int, layers: int, **changes: object) -> Card:
    table = replace(TokenEmbedding(100, width, length=32, types=2), **changes)  # type: ignore[arg-type]
    return Card(encoder=Stack(table, (Block(width, Attention(8, width // 8), (4 * width,)),) * layers))


@pytest.mark.parametrize(
    ("layers", "blocks", "each"), [(12, 4, 6), (6, 3, 4), (4, 4, 2), (2, 2, 2), (1, 1, 2), (5, 4, 4)]
)
def test_blocks_follow_the_teachers_layers(layers: int, blocks: int, each: int) -> None:
    menu = scaled(teacher(384, layers))
    assert (menu.blocks, menu.layers, menu.widths) == (blocks, each, (96, 144, 192, 288, 384))
    ends = boundaries(layers, blocks)
    assert (ends[0], ends[-1], len(ends)) == (0, layers, blocks + 1)
    assert all(0 < above - below <= each / 2 for below, above in pairwise(ends))


def test_a_large_teacher_gets_the_published_menu() -> None:
    menu = scaled(CARDS.get("bert-base"))
    assert (menu.widths, menu.head, menu.blocks, menu.layers) == (PUBLISHED.widths, 64, 4, 6)
    assert menu.embeddings == PUBLISHED.embeddings
    found = list(chains(scaled(teacher(384, 6))))
    assert len(found) == len(set(found)) == 5 * (5 + 5**2 + 5**3 + 5**4)
    assert found[0] == Chain(96, (REAL[0],))


def test_the_card_of_a_chain_has_no_idle_layers() -> None:
    menu = scaled(teacher(64, 2))
    blocks = [Chain(16, ("attention", "separable-5")), Chain(64, ("feed-forward",))]
    card = chain_card(menu, 8, blocks)
    assert [layer.width for layer in card.encoder.layers if isinstance(layer, Block)] == [16, 16, 64]
    assert not any(isinstance(layer, Block) and layer.empty for layer in card.encoder.layers)
    assert isinstance(card.encoder.layers[2].mixer, Identity)  # type: ignore[union-attr]
    assert card.encoder.embedding == replace(menu.tokens, width=16, factorised=8)
    assert chain_card(menu, 16, blocks).encoder.embedding.factorised is None  # type: ignore[union-attr]
    assert params(card) < params(teacher(64, 2))


@pytest.mark.parametrize(
    ("card", "why"),
    [
        (Card(encoder=Stack(PatchEmbedding(8, 4, 16), (Block(16, Attention(2, 8)),))), "family vision"),
        (Card(encoder=Stack(TokenEmbedding(9, 16), (Block(16, Attention(2, 8)), Block(8, Attention(2, 4))))), "8, 16"),
        (teacher(16, 1, positions="sinusoidal"), "sinusoidal positions"),
        (Card(encoder=Stack(TokenEmbedding(9, 4), (Block(4, Attention(2, 2)),))), "at least 8"),
    ],
)
def test_what_cannot_teach_is_refused(card: Card, why: str) -> None:
    with pytest.raises(IllegalInput, match=why):
        scaled(card)


@pytest.mark.parametrize(
    ("operation", "kind", "layer"),
    [
        ("attention", "attention", Block(64, Attention(4, 16))),
        ("attention-3", "attention", Block(64, Attention(3, 16))),
        ("feed-forward", "feed-forward", Block(64, Identity(), (256,))),
        ("feed-forward-128", "feed-forward", Block(64, Identity(), (128,))),
        ("separable-5", "separable", Block(64, SeparableConvolution(5))),
        ("identity", "identity", Block(64, Identity())),
    ],
)
def test_operations_are_layers(operation: str, kind: str, layer: Block) -> None:
    assert (kind_of(operation), candidate(operation, 64, 16)) == (kind, layer)
