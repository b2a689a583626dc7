"""One design, one byte string; what is not a design is refused with every fault and its place."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from tests.arch.near_misses import near_miss
from tests.arch.random_cards import FAMILIES, random_card

from formwright.arch.card import Card
from formwright.arch.layers import Block, FrameEmbedding, Layer, PatchEmbedding, Stack, TokenEmbedding
from formwright.arch.ops import Attention, CrossAttention
from formwright.core.errors import IllegalDesign
from formwright.core.rng import derive

BLOCK = Block(32, Attention(2, 16), (64,))
TEXT = Stack(TokenEmbedding(100, 32), (BLOCK,))
SPEAKER = Stack(TokenEmbedding(100, 32), (BLOCK, replace(BLOCK, cross=CrossAttention(2, 16))), causal=True)
IMAGE = Stack(PatchEmbedding(16, 4, 32), (BLOCK,))
SOUND = Stack(FrameEmbedding(40, 32), (BLOCK,))


def faults_of(data: Any) -> list[tuple[str, str]]:
    with pytest.raises(IllegalDesign) as caught:
        Card.from_json(data)
    return [(fault.where, fault.what) for fault in caught.value.faults]


def random_cards(count: int) -> Iterator[Card]:
    rng = derive(0, "json")
    return (random_card(rng, FAMILIES[index % len(FAMILIES)]) for index in range(count))


def test_json_round_trip_of_random_cards() -> None:
    for card in random_cards(300):
        again = Card.loads(card.canonical)
        assert again == card
        assert again is not card
        assert hash(again) == hash(card)
        assert again.canonical == card.canonical
        assert Card.loads(card.canonical.decode()) == card
        assert Card.from_json(json.loads(json.dumps(card.to_json(), indent=1))) == card


def test_canonical_bytes_are_sorted_json_without_blanks() -> None:
    for card in random_cards(300):
        assert card.canonical == json.dumps(card.to_json(), sort_keys=True, separators=(",", ":")).encode()
        assert card.canonical.isascii()


def test_same_design_same_bytes_however_it_is_written() -> None:
    short = Card(Stack(TokenEmbedding(100, 32), (BLOCK,)))
    spelled_out = {
        "share_embedding": False,
        "decoder": None,
        "encoder": {
            "final_norm": False,
            "layers": [
                {
                    "feed_forward": [64],
                    "norm": "post",
                    "cross": None,
                    "activation": "gelu",
                    "mixer": {"score": "sdp", "bias": True, "head_width": 16, "heads": 2, "type": "attention"},
                    "width": 32,
                    "type": "block",
                }
            ],
            "embedding": {"type": "tokens", "vocabulary": 100, "width": 32, "positions": "learned", "length": 512},
        },
        "schema": 1,
    }
    assert Card.from_json(spelled_out) == short
    assert Card.from_json(spelled_out).canonical == short.canonical
    assert Card.from_json(spelled_out).digest == short.digest


def test_the_bytes_and_the_digest_of_a_design_never_change() -> None:
    card = Card(TEXT, pooler=True)
    assert card.canonical == (
        b'{"encoder":{"embedding":{"type":"tokens","vocabulary":100,"width":32},"layers":[{"feed_forward":[64],'
        b'"mixer":{"head_width":16,"heads":2,"type":"attention"},"type":"block","width":32}]},"pooler":true,"schema":1}'
    )
    assert card.digest == "a759331744ea178cebb7520794ab4290004ec3992b5bcbd8b9388637657217ca"


def test_the_digest_changes_when_anything_changes() -> None:
    rng = derive(0, "changes")
    for card in random_cards(150):
        changed = near_miss(card, rng)
        assert changed.digest != card.digest
        assert replace(card, idle=card.idle + 1).digest != card.digest
        assert replace(card, classes=card.classes + 1).digest != card.digest
        assert len(card.digest) == 64


@pytest.mark.parametrize(
    ("card", "family"),
    [
        (Card(TEXT), "encoder"),
        (Card(SOUND), "encoder"),
        (Card(IMAGE), "vision"),
        (Card(decoder=replace(TEXT, causal=True)), "decoder"),
        (Card(TEXT, SPEAKER), "encoder-decoder"),
        (Card(IMAGE, SPEAKER), "encoder-decoder"),
    ],
)
def test_family(card: Card, family: str) -> None:
    assert card.family == family
    assert card.stacks == tuple(stack for stack in (card.encoder, card.decoder) if stack)
    assert card.output_width == 32


def test_the_output_is_as_wide_as_the_last_stack() -> None:
    wide: Layer = Block(64, Attention(2, 16))
    assert Card(replace(TEXT, layers=(BLOCK, wide))).output_width == 64
    assert Card(replace(TEXT, layers=(BLOCK, wide)), SPEAKER).output_width == 32


@pytest.mark.parametrize(
    ("fields", "where", "what"),
    [
        ({}, "the whole", "needs an encoder, a decoder, or both"),
        ({"decoder": TEXT}, "decoder.causal", "must be true: a decoder may not look ahead"),
        ({"encoder": IMAGE, "pooler": True}, "pooler", "belongs to encoders; the family of this design is vision"),
        (
            {"encoder": TEXT, "decoder": SPEAKER, "pooler": True},
            "pooler",
            "belongs to encoders; the family of this design is encoder-decoder",
        ),
        ({"encoder": TEXT, "share_embedding": True}, "share_embedding", "SHARE"),
        ({"encoder": SOUND, "decoder": SPEAKER, "share_embedding": True}, "share_embedding", "SHARE"),
        (
            {"encoder": replace(TEXT, embedding=TokenEmbedding(99, 32)), "decoder": SPEAKER, "share_embedding": True},
            "share_embedding",
            "SHARE",
        ),
        (
            {
                "encoder": replace(TEXT, embedding=TokenEmbedding(100, 32, 8)),
                "decoder": SPEAKER,
                "share_embedding": True,
            },
            "share_embedding",
            "SHARE",
        ),
    ],
)
def test_rules_of_the_whole_card(fields: dict[str, Any], where: str, what: str) -> None:
    with pytest.raises(IllegalDesign) as caught:
        Card(**fields)
    expected = what.replace("SHARE", "needs an encoder and a decoder with token tables of equal size")
    assert [(fault.where, fault.what) for fault in caught.value.faults] == [(where, expected)]


def test_stacks_of_equal_tables_may_share_them() -> None:
    wide = Stack(TokenEmbedding(100, 64, factorised=32), (Block(64, Attention(2, 16)),))
    assert Card(wide, SPEAKER, share_embedding=True).share_embedding


def test_a_broken_card_lists_all_faults_at_once() -> None:
    data = Card(TEXT, SPEAKER).to_json()
    data["encoder"]["embedding"].update(vocabulary=0, widht=3)
    data["encoder"]["layers"][0].update(width="wide", activation="tanh", feed_forward=[64, True, -1])
    data["decoder"]["layers"][0]["mixer"]["type"] = "atention"
    del data["decoder"]["layers"][1]["cross"]["heads"]
    data["decoder"]["causal"] = 1
    data["poler"] = True
    assert faults_of(data) == [
        ("poler", "is not a field; did you mean 'pooler'?"),
        ("encoder.embedding.widht", "is not a field; did you mean 'width'?"),
        ("encoder.embedding.vocabulary", "must be at least 1 and at most 1000000000000, not 0"),
        ("encoder.layers[0].width", 'must be a whole number, not "wide"'),
        ("encoder.layers[0].feed_forward[1]", "must be a whole number, not true"),
        ("encoder.layers[0].feed_forward[2]", "must be at least 1 and at most 1000000000000, not -1"),
        ("encoder.layers[0].activation", 'is "tanh"; allowed: gelu, relu, swish, leaky-relu, squared-relu'),
        (
            "decoder.layers[0].mixer.type",
            "is \"atention\". Nearest: 'attention'. Known: attention, transform, dynamic-convolution, "
            "separable-convolution, lightweight-convolution, op-graph, identity",
        ),
        ("decoder.layers[1].cross.heads", "is missing"),
        ("decoder.causal", "must be true or false, not 1"),
    ]


def test_the_message_counts_and_lists_the_faults() -> None:
    data = Card(TEXT).to_json() | {"pooler": 1, "idle": -2}
    with pytest.raises(IllegalDesign) as caught:
        Card.from_json(data)
    assert str(caught.value).splitlines() == [
        "illegal card, 2 faults:",
        "  pooler: must be true or false, not 1",
        "  idle: must be at least 0 and at most 1000000000000, not -2",
    ]


def test_a_card_of_a_newer_schema_is_refused() -> None:
    newer = Card(TEXT).to_json() | {"schema": Card.VERSION + 1, "field_of_tomorrow": {}}
    update = "is 2; this formwright reads up to 1. Update formwright to read this card"
    assert faults_of(newer) == [("schema", update)]
