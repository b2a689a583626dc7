"""The published JSON Schema is up to date, takes every card, and refuses what has not the shape of one."""

import json
from importlib.resources import files
from typing import Any

import jsonschema
import pytest
from tests.arch.broken_json import SMALL, mutate
from tests.arch.random_cards import FAMILIES, random_card

from formwright.arch.card import Card, card_schema
from formwright.core.errors import IllegalDesign
from formwright.core.rng import derive

REGENERATE = (
    "card.schema.json is out of date; from the project's root: "
    'python -c "import json; from formwright.arch.card import card_schema; print(json.dumps(card_schema(), indent=2))" '
    "> src/formwright/arch/card.schema.json"
)
VALIDATOR = jsonschema.Draft202012Validator(card_schema())


def broken(*path: str | int, value: Any) -> Any:
    """Give the small card with something else at the place that `path` leads to."""
    data = json.loads(SMALL)
    holder: Any = data
    for step in path[:-1]:
        holder = holder[step]
    holder[path[-1]] = value
    return data


def test_the_published_file_is_the_schema_of_today() -> None:
    published = files("formwright.arch").joinpath("card.schema.json").read_text(encoding="utf-8")
    assert published == json.dumps(card_schema(), indent=2) + "\n", REGENERATE


def test_the_schema_is_a_legal_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(card_schema())
    assert card_schema()["properties"]["schema"] == {"const": Card.VERSION}


def test_every_random_card_is_valid() -> None:
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
