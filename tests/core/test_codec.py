"""Reading finds every fault and its place; writing leaves defaults out and is canonical."""

import json
from dataclasses import dataclass, fields
from math import inf, nan
from typing import Annotated, Any, ClassVar, Literal

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formwright.core import codec
from formwright.core.codec import Leaf, Natural, Positive, Range, range_faults
from formwright.core.errors import Fault, IllegalDesign
from formwright.core.json_schema import json_schema


def read_colour(data: Any) -> tuple[int, int, int]:
    if not (isinstance(data, str) and len(data) == 6):
        raise ValueError("must be six hexadecimal digits")
    return int(data[:2], 16), int(data[2:4], 16), int(data[4:], 16)


COLOUR = Leaf(read_colour, lambda colour: bytes(colour).hex(), {"type": "string"})


@dataclass(frozen=True)
class Circle:
    """Be round.

    This line is not part of the description.
    """

    TYPE: ClassVar[str] = "circle"
    radius: Positive


@dataclass(frozen=True)
class Square:
    """Have corners."""

    TYPE: ClassVar[str] = "square"
    side: Positive
    turned: bool = False


@dataclass(frozen=True)
class Wheel:
    """Turn."""

    spokes: Natural = 8

    def __post_init__(self) -> None:
        if self.spokes == 13:
            raise IllegalDesign([Fault("spokes", "is unlucky"), Fault("", "is refused")])


@dataclass(frozen=True)
class Picture:
    """Show shapes."""

    VERSION: ClassVar[int] = 3
    name: str
    shapes: tuple[Circle | Square, ...] = ()
    mood: Literal["calm", "wild"] = "calm"
    scale: float = 1.0
    frame: Square | None = None
    wheel: Wheel | None = None
    colour: Annotated[tuple[int, int, int], COLOUR] = (0, 0, 0)
    axes: Literal[1, 2] = 1


FIELDS = [field.name for field in fields(Picture)]
PICTURE = Picture("sea", (Circle(2), Square(3, turned=True)), "wild", 0.5, Square(9), Wheel(), (255, 0, 16))
shapes = st.one_of(st.builds(Circle, st.integers(1, 99)), st.builds(Square, st.integers(1, 99), st.booleans()))
pictures = st.builds(
    Picture,
    st.text(),
    st.lists(shapes, max_size=4).map(tuple),
    st.sampled_from(["calm", "wild"]),
    st.floats(allow_nan=False, allow_infinity=False),
    st.none() | st.builds(Square, st.integers(1, 99)),
    st.none() | st.builds(Wheel, st.integers(0, 12)),
    st.tuples(*[st.integers(0, 255)] * 3),
    st.sampled_from([1, 2]),
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text() | st.just("type"), inner, max_size=3),
    max_leaves=8,
)


def faults_of(data: Any, kind: type = Picture) -> list[tuple[str, str]]:
    with pytest.raises(IllegalDesign) as caught:
        codec.read(kind, data, "picture")
    assert caught.value.what == "picture"
    return [(fault.where, fault.what) for fault in caught.value.faults]


@given(pictures)
def test_what_is_written_is_read_back(picture: Picture) -> None:
    data = codec.write(picture)
    assert codec.read(Picture, data, "picture") == picture
    assert codec.read(Picture, codec.loads(codec.text(picture)), "picture") == picture
    assert codec.text(picture) == codec.canonical(data) == json.dumps(data, sort_keys=True, separators=(",", ":"))


def test_defaults_are_left_out_and_classes_say_what_they_are() -> None:
    assert codec.write(Picture("sea")) == {"schema": 3, "name": "sea"}
    assert codec.write(PICTURE) == {
        "schema": 3,
        "name": "sea",
        "shapes": [{"type": "circle", "radius": 2}, {"type": "square", "side": 3, "turned": True}],
        "mood": "wild",
        "scale": 0.5,
        "frame": {"type": "square", "side": 9},
        "wheel": {},
        "colour": "ff0010",
    }
    assert codec.header(Wheel) == {}
    assert codec.header(Circle) == {"type": "circle"}


@pytest.mark.parametrize(
    ("field", "value", "where", "what"),
    [
        ("name", 3, "name", "must be text, not 3"),
        ("name", None, "name", "must be text, not null"),
        ("scale", "big", "scale", 'must be a number, not "big"'),
        ("mood", "bored", "mood", 'is "bored"; allowed: calm, wild'),
        ("mood", ["calm"], "mood", 'is ["calm"]; allowed: calm, wild'),
        ("axes", 3, "axes", "is 3; allowed: 1, 2"),
        ("axes", True, "axes", "is true; allowed: 1, 2"),
        ("colour", "red", "colour", "must be six hexadecimal digits"),
        ("wheel", [], "wheel", "must be an object, not []"),
        ("wheel", {"spokes": -1}, "wheel.spokes", "must be at least 0 and at most 1000000000000, not -1"),
        ("wheel", {"spokes": 10**12 + 1}, "wheel.spokes", f"must be at least 0 and at most {10**12}, not {10**12 + 1}"),
        ("wheel", {"spokes": 2.0}, "wheel.spokes", "must be a whole number, not 2.0"),
        ("wheel", {"spokes": True}, "wheel.spokes", "must be a whole number, not true"),
        ("wheel", {"xyz": 1}, "wheel.xyz", "is not a field; known: spokes"),
        ("frame", {"type": "circle", "radius": 1}, "frame.type", 'is "circle". Known: square'),
        ("frame", {"side": 1}, "frame.type", "is null. Known: square"),
        ("shapes", {}, "shapes", "must be a list, not {}"),
        ("shapes", [{"type": "circle"}], "shapes[0].radius", "is missing"),
        ("shapes", [{"type": "sqare"}], "shapes[0].type", "is \"sqare\". Nearest: 'square'. Known: circle, square"),
        ("shapes", [{"type": ["circle"]}], "shapes[0].type", 'is ["circle"]. Known: circle, square'),
        ("shapes", [None], "shapes[0]", "must be an object whose type is one of circle, square, not null"),
        ("shapes", ["circle"], "shapes[0]", 'must be an object whose type is one of circle, square, not "circle"'),
        ("nmae", "sea", "nmae", "is not a field; did you mean 'name'?"),
        ("not a name\n", 1, r'"not a name\n"', "is not a field; did you mean 'name'?"),
        ("\ud800", 1, r'"\ud800"', f"is not a field; known: {', '.join(FIELDS)}, schema"),
    ],
)
def test_one_fault_is_found_where_it_is(field: str, value: Any, where: str, what: str) -> None:
    data = {"schema": 3, "name": "sea", field: value}
    assert faults_of(data) == [(where, what)]
    assert field in ("axes", "colour", "wheel") or not VALIDATOR.is_valid(data)  # 2.0 and true are 2 and 1 to a schema


def test_all_faults_are_found_in_the_order_of_the_fields() -> None:
    data = {"zzz": 1, "wheel": {"spokes": "8"}, "shapes": [{"type": "circle", "radius": 0}, 7], "aaa": 2}
    places = "zzz aaa name shapes[0].radius shapes[1] wheel.spokes"
    assert [where for where, _ in faults_of(data)] == places.split()


def test_what_a_value_says_of_itself_is_put_where_it_stands() -> None:
    unlucky = {"spokes": 13}
    assert faults_of({"name": "sea", "wheel": unlucky}) == [("wheel.spokes", "is unlucky"), ("wheel", "is refused")]
    assert faults_of(unlucky, Wheel) == [("spokes", "is unlucky"), ("the whole", "is refused")]


def test_a_long_value_is_shown_in_part() -> None:
    ((_, what),) = faults_of({"name": ["x" * 1000]})
    assert what == 'must be text, not ["' + "x" * 55 + "..."
    ((_, number),) = faults_of({"name": "sea", "wheel": {"spokes": 10**4000}})
    assert number.endswith("00...")
    assert len(number) < 130


def faults_if_any(data: Any) -> tuple[Fault, ...]:
    """Read a picture, letting through no other error than the one that lists faults."""
    try:
        codec.read(Picture, data, "picture")
    except IllegalDesign as error:
        return error.faults
    return ()


@given(json_values)
def test_any_json_is_refused_with_faults_when_it_has_no_name(data: Any) -> None:
    assert faults_if_any(data) or "name" in data


@given(st.sampled_from(FIELDS), json_values)
def test_any_json_in_any_field_is_legal_or_at_fault_there(field: str, data: Any) -> None:
    found = faults_if_any(codec.write(PICTURE) | {field: data})
    assert all(fault.where.startswith(field) for fault in found)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ('{"a": 1, "b": {"c": 1, "c": 2}}', "repeats the key 'c'"),
        ("[NaN]", "holds NaN, which is not a number"),
        ("[Infinity]", "holds Infinity, which is not a number"),
        ("[" * 100_000, "is nested too deeply to be read"),
        ('{"a":' * 100_000, "is nested too deeply to be read"),
        (b'"\xff"', "invalid start byte"),
        ("1" * 5000, "Exceeds the limit"),
        ("{'a': 1}", "Expecting property name"),
        ("", "Expecting value"),
    ],
)
def test_text_that_is_not_strict_json_is_a_value_error(text: str | bytes, what: str) -> None:
    with pytest.raises(ValueError, match=what):
        codec.loads(text)


def test_strict_json_is_read() -> None:
    assert codec.loads(b'{"a": [1, 2.5, null, true, "\\u00e9"]}') == {"a": [1, 2.5, None, True, "é"]}


def test_canonical_text_is_ascii_sorted_and_without_blanks() -> None:
    assert codec.canonical({"b": [1, 2], "a": "é"}) == '{"a":"\\u00e9","b":[1,2]}'


SCHEMA = json_schema(Picture, "Picture")
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def test_the_schema_says_what_is_read() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert json_schema(Circle, "Round") == {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Round",
        "description": "Be round.",
        "type": "object",
        "properties": {"type": {"const": "circle"}, "radius": {"type": "integer", "minimum": 1, "maximum": 10**12}},
        "required": ["type", "radius"],
        "additionalProperties": False,
        "$defs": {},
    }
    assert (list(SCHEMA["$defs"]), SCHEMA["required"]) == (["Circle", "Square", "Wheel"], ["schema", "name"])
    circle, square, wheel = ({"$ref": f"#/$defs/{name}"} for name in SCHEMA["$defs"])
    assert SCHEMA["properties"] == {
        "schema": {"const": 3},
        "name": {"type": "string"},
        "shapes": {"type": "array", "items": {"anyOf": [circle, square]}, "default": []},
        "mood": {"enum": ["calm", "wild"], "default": "calm"},
        "scale": {"type": "number", "default": 1.0},
        "frame": {"anyOf": [square, {"type": "null"}], "default": None},
        "wheel": {"anyOf": [wheel, {"type": "null"}], "default": None},
        "colour": {"type": "string", "default": [0, 0, 0]},
        "axes": {"enum": [1, 2], "default": 1},
    }


@given(pictures)
def test_what_is_written_is_valid(picture: Picture) -> None:
    VALIDATOR.validate(codec.write(picture))


@pytest.mark.parametrize("missing", ["schema", "name"])
def test_what_is_required_is_required(missing: str) -> None:
    assert not VALIDATOR.is_valid({name: item for name, item in codec.write(PICTURE).items() if name != missing})


@pytest.mark.parametrize(
    ("bounds", "legal", "illegal"),
    [
        (Range(), (-1e300, 0, 1e300), (inf, -inf, nan)),
        (Range(1), (1, 1e300), (0.99, inf, -inf, nan)),
        (Range(most=2), (2, -1e300), (2.01, inf, -inf, nan)),
        (Range(1, 2), (1, 2), (0, 3, inf, nan)),
    ],
)
def test_a_range_has_finite_numbers_up_to_its_bounds(
    bounds: Range, legal: tuple[float, ...], illegal: tuple[float, ...]
) -> None:
    assert [bounds.fault(value) for value in legal] == [None] * len(legal)
    assert all(bounds.fault(value) for value in illegal)


@dataclass(frozen=True)
class Cart:
    wheel: Wheel = Wheel(-1)
    spare: Wheel | None = None
    more: tuple[Wheel, ...] = ()


@dataclass(frozen=True)
class Train:
    carts: tuple[Cart, ...] = (Cart(), Cart(Wheel(0), Wheel(-2), (Wheel(3), Wheel(-3))))
    first: Circle = Circle(0)


def test_numbers_out_of_range_are_found_however_deep_but_not_inside_of_closed_classes() -> None:
    places = ["carts[0].wheel.spokes", "carts[1].spare.spokes", "carts[1].more[1].spokes", "first.radius"]
    assert [fault.where for fault in range_faults(Train())] == places
    assert [fault.where for fault in range_faults(Train(), "train", Wheel)] == ["train.first.radius"]
    assert [fault.where for fault in range_faults(Train(), closed=(Wheel, Circle))] == []
