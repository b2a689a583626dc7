"""Whatever is given as a card is a card or an `IllegalDesign`, and nothing else is ever raised."""

import json
from typing import Any

import pytest
from tests.arch.broken_json import SMALL, STRANGE, mutate, places
from tests.arch.random_cards import random_card

from formwright.arch.card import Card
from formwright.core.errors import IllegalDesign
from formwright.core.rng import derive


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


def test_the_small_card_is_legal() -> None:
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
    assert outcome(json.dumps({"schema": version})) == message
    assert outcome("{}") == message


def test_nesting_that_can_just_be_read_is_refused_too() -> None:
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
