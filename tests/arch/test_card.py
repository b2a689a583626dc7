import json
from collections.abc import Iterator
from dataclasses import replace
from importlib.resources import files
from typing import Any

import jsonschema
import pytest
from tests.arch.changed_cards import SMALL, STRANGE, mutate, near_miss, places
from tests.arch.random_cards import FAMILIES, random_card

from formwright.arch.card import Card, card_schema
from formwright.arch.embeddings import FrameEmbedding, PatchEmbedding, TokenEmbedding
from formwright.arch.layers import Block, Layer, Stack
from formwright.arch.ops import Attention, CrossAttention, operations_at
from formwright.core.errors import IllegalDesign
from formwright.core.rng import derive

BLOCK = Block(32, Attention(2, 16), (64,))
TEXT = Stack(TokenEmbedding(100, 32), (BLOCK,))
SPEAKER = Stack(TokenEmbedding(100, 32), (BLOCK, replace(BLOCK, cross=CrossAttention(2, 16))), causal=True)
IMAGE = Stack(PatchEmbedding(16, 4, 32), (BLOCK,))
SOUND = Stack(FrameEmbedding(40, 32), (BLOCK,))
REGENERATE = (
    "card.schema.json is out of date; from the project's root: "
    'python -c "import json; from formwright.arch.card import card_schema; print(json.dumps(card_schema(), indent=2))" '
    "> src/formwright/arch/card.schema.json"
)
VALIDATOR = jsonschema.Draft202012Validator(card_schema())


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
        assert (again, again is card, hash(again)) == (card, False, hash(card))
        assert (again.canonical, Card.loads(card.canonical.decode())) == (card.canonical, card)
        assert Card.from_json(json.loads(json.dumps(card.to_json(), indent=1))) == card


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


def test_bytes_and_digests_never_change() -> None:
    for card in random_cards(300):
        assert card.canonical == json.dumps(card.to_json(), sort_keys=True, separators=(",", ":")).encode()
        assert card.canonical.isascii()
    card = Card(TEXT, pooler=True)
    assert card.canonical == (
        b'{"encoder":{"embedding":{"type":"tokens","vocabulary":100,"width":32},"layers":[{"feed_forward":[64],'
        b'"mixer":{"head_width":16,"heads":2,"type":"attention"},"type":"block","width":32}]},"pooler":true,"schema":1}'
    )
    assert card.digest == "a759331744ea178cebb7520794ab4290004ec3992b5bcbd8b9388637657217ca"
    rng = derive(0, "changes")
    for card in random_cards(150):
        assert near_miss(card, rng).digest != card.digest
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


@pytest.mark.parametrize(
    ("fields", "where", "what"),
    [
        ({}, "the whole", "needs an encoder, a decoder, or both"),
        ({"decoder": TEXT}, "decoder.causal", "must be true"),
        ({"encoder": IMAGE, "pooler": True}, "pooler", "family of this design is vision"),
        ({"encoder": TEXT, "decoder": SPEAKER, "pooler": True}, "pooler", "encoder-decoder"),
        *(
            ({"encoder": below, "decoder": above, "share_embedding": True}, "share_embedding", "tables of equal size")
            for below, above in (
                (TEXT, None),
                (SOUND, SPEAKER),
                (replace(TEXT, embedding=TokenEmbedding(99, 32)), SPEAKER),
                (replace(TEXT, embedding=TokenEmbedding(100, 32, 8)), SPEAKER),
            )
        ),
    ],
)
def test_rules_of_the_whole_card(fields: dict[str, Any], where: str, what: str) -> None:
    with pytest.raises(IllegalDesign) as caught:
        Card(**fields)
    (fault,) = caught.value.faults
    assert (fault.where, what in fault.what) == (where, True)


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
            f"is \"atention\". Nearest: 'attention'. Known: {', '.join(operations_at('mixer'))}",
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


def outcome(text: str | bytes) -> str:
    """Read a card; give the message when it is refused, and `legal` when it is a card that reads back."""
    try:
        card = Card.loads(text)
    except IllegalDesign as error:
        message = str(error)
        message.encode()  # can be printed
        return message
    assert Card.loads(card.canonical) == card
    return "legal"


def test_widths_and_shared_tables() -> None:
    wide: Layer = Block(64, Attention(2, 16))
    assert Card(replace(TEXT, layers=(BLOCK, wide))).output_width == 64
    assert Card(replace(TEXT, layers=(BLOCK, wide)), SPEAKER).output_width == 32
    wide = Stack(TokenEmbedding(100, 64, factorised=32), (Block(64, Attention(2, 16)),))
    assert Card(wide, SPEAKER, share_embedding=True).share_embedding
    assert outcome(SMALL) == "legal"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is not JSON that can be read: Expecting value"),
        ("{", "is not JSON that can be read: Expecting property name"),
        ('{"schema":1,}', "is not JSON that can be read"),
        (SMALL.replace("9", "NaN"), "the whole: is not JSON that can be read: holds NaN, which is not a number"),
        (SMALL.replace("9", "-Infinity"), "holds -Infinity, which is not a number"),
        (SMALL.replace('"heads":2', '"heads":2,"heads":3'), "repeats the key 'heads'"),
        ("[" * 100_000, "is nested too deeply to be read"),
        ('{"schema":1,"encoder":' + "[" * 100_000 + "]" * 100_000 + "}", "is nested too deeply to be read"),
        (b"\xff\xfe\xfa", "is not JSON that can be read"),
        (b'{"schema":1,"\xff":2}', "is not JSON that can be read: 'utf-8' codec can't decode byte 0xff"),
        ("\ufeff" + SMALL, "is not JSON that can be read"),
        (SMALL.replace("9", "9" * 5000), "is not JSON that can be read: Exceeds the limit"),
        (SMALL.replace("9", "9" * 4000), "encoder.embedding.vocabulary: must be at least 1 and at most 1000000000000"),
        (SMALL.replace("9", "1e400"), "encoder.embedding.vocabulary: must be a whole number, not Infinity"),
        (SMALL.replace("9", "9.0"), "encoder.embedding.vocabulary: must be a whole number, not 9.0"),
        (SMALL.replace("9", "true"), "encoder.embedding.vocabulary: must be a whole number, not true"),
        (
            SMALL.replace('"tokens"', '["tokens"]'),
            'encoder.embedding.type: is ["tokens"]. Known: tokens, patches, frames',
        ),
        (SMALL.replace('"width":8', '"width":null'), "encoder.layers[0].width: must be a whole number, not null"),
        (SMALL.replace('"vocabulary":9', '"\\ud800\\u001b":9'), r'encoder.embedding."\ud800\u001b": is not a field'),
    ],
)
def test_what_is_not_a_card_is_refused_with_a_reason(text: str | bytes, message: str) -> None:
    found = outcome(text)
    assert found.startswith("illegal card, ")
    assert message in found
    assert len(found) < 1000


@pytest.mark.parametrize("data", [None, 3, "card", [], [1], True])
def test_what_is_not_an_object_is_refused(data: Any) -> None:
    assert outcome(json.dumps(data)).endswith(
        "the whole: must be a JSON object with a schema version and an encoder or a decoder"
    )


@pytest.mark.parametrize("version", [None, True, 0, -1, "1", 1.0, [1]])
def test_a_schema_version_is_a_positive_integer(version: Any) -> None:
    message = "illegal card, 1 fault:\n  schema: must be the version of the card schema, 1 today"
    assert (outcome(json.dumps({"schema": version})), outcome("{}")) == (message, message)


def test_newer_schemas_and_deep_nesting_are_refused() -> None:
    newer = Card(TEXT).to_json() | {"schema": Card.VERSION + 1, "field_of_tomorrow": {}}
    update = "is 2; this formwright reads up to 1. Update formwright to read this card"
    assert faults_of(newer) == [("schema", update)]
    for depth in range(900, 1050):
        assert outcome('{"schema":1,"encoder":' + "[" * depth + "]" * depth + "}").startswith("illegal card, 1 fault:")


@pytest.mark.parametrize("strange", STRANGE)
def test_a_strange_value_anywhere_is_a_fault_or_legal(strange: Any) -> None:
    for index in range(len(places(json.loads(SMALL)))):
        data = json.loads(SMALL)
        holder, key = places(data)[index]
        holder[key] = strange
        outcome(json.dumps(data))


def test_mutated_cards_are_cards_or_refused() -> None:
    rng = derive(0, "fuzz")
    found = []
    for _ in range(500):
        data = random_card(rng).to_json()
        for _ in range(int(rng.integers(1, 4))):
            if data:
                mutate(data, rng)
        found.append(outcome(json.dumps(data)))
    assert 25 < found.count("legal") < 475


def test_mutated_bytes_are_cards_or_refused() -> None:
    rng = derive(0, "bytes")
    for _ in range(500):
        text = bytearray(random_card(rng, most_layers=1).canonical)
        for place in rng.integers(len(text), size=int(rng.integers(1, 4))):
            text[place] = int(rng.integers(256))
        outcome(bytes(text))


def broken(*path: str | int, value: Any) -> Any:
    """Give the small card with something else at the place that `path` leads to."""
    data = json.loads(SMALL)
    holder: Any = data
    for step in path[:-1]:
        holder = holder[step]
    holder[path[-1]] = value
    return data


def test_the_schema_is_legal_published_and_fits_random_cards() -> None:
    published = files("formwright.arch").joinpath("card.schema.json").read_text(encoding="utf-8")
    assert published == json.dumps(card_schema(), indent=2) + "\n", REGENERATE
    jsonschema.Draft202012Validator.check_schema(card_schema())
    assert card_schema()["properties"]["schema"] == {"const": Card.VERSION}
    rng = derive(0, "schema")
    for index in range(100):
        VALIDATOR.validate(random_card(rng, FAMILIES[index % len(FAMILIES)]).to_json())


@pytest.mark.parametrize(
    "data",
    [
        [],
        {},
        broken("schema", value=2),
        broken("more", value=1),
        broken("pooler", value="yes"),
        broken("encoder", value=[]),
        broken("encoder", "embedding", "type", value="words"),
        broken("encoder", "embedding", "width", value=0),
        broken("encoder", "embedding", "width", value="8"),
        broken("encoder", "embedding", "positions", value="absolute"),
        broken("encoder", "embedding", value={"type": "tokens", "width": 8}),
        broken("encoder", "layers", value={}),
        broken("encoder", "layers", 0, "activation", value="tanh"),
        broken("encoder", "layers", 0, "feed_forward", value=[16, None]),
        broken("encoder", "layers", 0, "cross", value={"heads": 1, "head_width": 4}),
        broken("encoder", "layers", 0, "mixer", value={"type": "convolution"}),
        broken("encoder", "layers", 0, "mixer", value={"type": "op-graph", "heads": 1, "head_width": 4, "term": 5}),
        broken("encoder", "layers", 0, "mixer", "relative", value={"rows": 9, "axes": 3}),
    ],
)
def test_what_has_not_the_shape_of_a_card_is_invalid(data: Any) -> None:
    assert VALIDATOR.is_valid(json.loads(SMALL))
    assert not VALIDATOR.is_valid(data)
    with pytest.raises(IllegalDesign):
        Card.from_json(data)


@pytest.mark.parametrize(
    ("class_tokens", "legal"), [(0, True), (1, True), (2, True), (3, False), (-1, False), (True, False)]
)
def test_up_to_two_trained_tokens_stand_before_patches(class_tokens: int, legal: bool) -> None:
    patches = {"type": "patches", "image": 8, "patch": 4, "width": 8, "class_tokens": class_tokens}
    data = broken("encoder", "embedding", value=patches)
    assert VALIDATOR.is_valid(data) == legal
    if legal:
        Card.from_json(data)
    else:
        with pytest.raises(IllegalDesign, match="class_tokens"):
            Card.from_json(data)


def test_no_legal_card_is_invalid() -> None:
    rng = derive(0, "mutations")
    seen = set()
    for _ in range(150):
        data = random_card(rng, most_layers=2).to_json()
        mutate(data, rng)
        valid = VALIDATOR.is_valid(data)
        try:
            Card.from_json(data)
        except IllegalDesign:
            seen.add(("illegal", valid))
        else:
            assert valid, data
            seen.add(("legal", valid))
    assert seen == {("legal", True), ("illegal", False), ("illegal", True)}
