"""The schema that is published says what the codec reads."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import jsonschema
import pytest

from formwright.core import codec
from formwright.core.codec import Leaf, Natural, Positive
from formwright.core.errors import IllegalDesign
from formwright.core.schema import json_schema

UPPER = Leaf(lambda data: data, lambda value: value, {"type": "string", "pattern": "^[A-Z]+$"})


@dataclass(frozen=True)
class Leafy:
    """Carry leaves.

    This line is not part of the description.
    """

    TYPE: ClassVar[str] = "leafy"
    leaves: Positive


@dataclass(frozen=True)
class Bare:
    TYPE: ClassVar[str] = "bare"


@dataclass(frozen=True)
class Tree:
    """Grow."""

    VERSION: ClassVar[int] = 2
    name: str
    crown: Leafy | Bare
    rings: tuple[Natural, ...] = ()
    age: Natural | None = None
    kind: Literal["oak", "elm"] = "oak"
    mark: Annotated[str, UPPER] = "A"
    height: float = 1.0
    felled: bool = False
    heir: Leafy | None = None


SCHEMA = json_schema(Tree, "Tree")
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
OAK = Tree("oak", Leafy(3))


def test_the_whole_schema() -> None:
    assert json_schema(Leafy, "Leaves") == {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Leaves",
        "description": "Carry leaves.",
        "type": "object",
        "properties": {"type": {"const": "leafy"}, "leaves": {"type": "integer", "minimum": 1, "maximum": 10**12}},
        "required": ["type", "leaves"],
        "additionalProperties": False,
        "$defs": {},
    }


def test_the_parts_of_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert list(SCHEMA["$defs"]) == ["Bare", "Leafy"]
    assert SCHEMA["required"] == ["schema", "name", "crown"]
    leafy = {"$ref": "#/$defs/Leafy"}
    assert SCHEMA["properties"] == {
        "schema": {"const": 2},
        "name": {"type": "string"},
        "crown": {"anyOf": [leafy, {"$ref": "#/$defs/Bare"}]},
        "rings": {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 10**12}, "default": []},
        "age": {"anyOf": [{"type": "integer", "minimum": 0, "maximum": 10**12}, {"type": "null"}], "default": None},
        "kind": {"enum": ["oak", "elm"], "default": "oak"},
        "mark": {"type": "string", "pattern": "^[A-Z]+$", "default": "A"},
        "height": {"type": "number", "default": 1.0},
        "felled": {"type": "boolean", "default": False},
        "heir": {"anyOf": [leafy, {"type": "null"}], "default": None},
    }


@pytest.mark.parametrize("tree", [OAK, Tree("elm", Bare(), (1, 2), 9, "elm", "B", 2.5, True, Leafy(1))])
def test_what_is_written_is_valid(tree: Tree) -> None:
    VALIDATOR.validate(codec.write(tree))


@pytest.mark.parametrize(
    "change",
    [
        {"name": 3},
        {"crown": {"type": "bush"}},
        {"crown": {"type": "leafy"}},
        {"crown": {"type": "leafy", "leaves": 0}},
        {"crown": {"type": "bare", "leaves": 1}},
        {"rings": [1, -1]},
        {"rings": 1},
        {"age": -1},
        {"kind": "ash"},
        {"height": "tall"},
        {"felled": 1},
        {"heir": {"leaves": 1}},
        {"more": 1},
    ],
)
def test_what_the_codec_refuses_is_invalid(change: dict[str, Any]) -> None:
    data = codec.write(OAK) | change
    assert not VALIDATOR.is_valid(data)
    with pytest.raises(IllegalDesign):
        codec.read(Tree, data, "tree")


@pytest.mark.parametrize("missing", ["schema", "name", "crown"])
def test_what_is_required_is_required(missing: str) -> None:
    data = codec.write(OAK)
    del data[missing]
    assert not VALIDATOR.is_valid(data)
