"""Parts and their options: JSON in and out, faults all at once, stages by name, and objects that no file can hold."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

import pytest

from formwright.core.errors import IllegalDesign, IllegalInput
from formwright.core.options import (
    Part,
    PartReader,
    PartWriter,
    PythonObject,
    Stage,
    describe,
    inputs_of,
    option,
    options_of,
    read_set,
    set_option,
    with_inputs,
)
from formwright.core.registry import Registry

FRUITS: Registry[Any] = Registry("fruit", {"apple": f"{__name__}:Apple", "pear": f"{__name__}:Pear"}, "none.at.all")


class Fruit(Part):
    @classmethod
    def registry(cls) -> Registry[Any]:
        return FRUITS


@dataclass(frozen=True)
class Apple(Fruit):
    NAME: ClassVar[str] = "apple"
    weight: float = option(1.5, "grams")
    colour: Literal["red", "green"] = option("red", "what it looks like")

    def __post_init__(self) -> None:
        if self.weight < 0:
            raise IllegalInput(f"weight is at least 0, not {self.weight}")


@dataclass(frozen=True)
class Pear(Fruit):
    NAME: ClassVar[str] = "pear"
    ripe: bool = option(True)
    within: "Source | None" = option(None)


@dataclass(frozen=True)
class Box:
    width: int = 3
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Source(Stage):
    NAME: ClassVar[str] = "source"
    seed: int = option(0, "random seed")


@dataclass(frozen=True)
class Everything(Stage):
    NAME: ClassVar[str] = "everything"
    fruit: Fruit = option(Apple(), "the fruit")
    box: Box = option(Box())
    source: Source | None = option(None)
    space: str | Stage | Any = option("nowhere")
    sizes: Mapping[str, float] = option({})
    boxes: tuple[Box, ...] = option(())
    number: int | None = option(None)
    trials: int = option(5, "how many", extent=True)
    mine: Any = option(None)
    hidden: int = field(default=0, init=False)


def written(value: Any, **options: Any) -> Any:
    return json.loads(json.dumps(PartWriter(**options).value(value)))


def read(kind: Any, data: Any, stages: Mapping[str, Any] | None = None) -> Any:
    reader = PartReader(stages)
    return reader.finished(reader.read(kind, data), "thing")


def record(data: Any, stages: Mapping[str, Any] | None = None) -> Everything:
    reader = PartReader(stages)
    found: Everything = reader.finished(reader.record(Everything, data, ""), "thing")
    return found


FULL = Everything(
    Apple(2.0, "green"), Box(4, ("a", "b")), None, "here", {"x": 1.0}, (Box(), Box(1)), 7, 9, [1, {"a": None}]
)


@pytest.mark.parametrize("value", [Everything(), FULL, replace(FULL, fruit=Pear(ripe=False))])
@pytest.mark.parametrize("whole", [False, True])
def test_what_is_written_is_read_back(value: Everything, whole: bool) -> None:
    data = json.loads(json.dumps(PartWriter(whole=whole).record(value)))
    assert record(data) == value


def test_only_what_differs_from_its_default_is_written() -> None:
    assert PartWriter().record(Everything()) == {}
    assert written(Apple()) == {"name": "apple"}
    assert written(Apple(2.0)) == {"name": "apple", "weight": 2.0}
    assert written(Apple(1), whole=True) == {"name": "apple", "weight": 1, "colour": "red"}
    assert written(replace(Everything(), number=0))["number"] == 0  # equal to False, and not to None


def test_how_far_a_run_goes_can_be_left_out() -> None:
    assert "trials" in PartWriter().record(FULL)
    assert "trials" not in PartWriter(extents=False, whole=True).record(FULL)


def test_a_part_is_its_name_or_an_object_with_its_name() -> None:
    assert read(Fruit, "apple") == Apple()
    assert read(Fruit, {"name": "apple", "weight": 3}) == Apple(3.0)
    assert type(read(Fruit, {"name": "apple", "weight": 3}).weight) is float


@pytest.mark.parametrize(
    ("data", "where", "told"),
    [
        ({"frut": "apple"}, "frut", "'fruit'"),
        ({"fruit": "aple"}, "fruit", "'apple'"),
        ({"fruit": 3}, "fruit", "3"),
        ({"fruit": {"weight": 3}}, "fruit", "name"),
        ({"fruit": {"name": "apple", "wieght": 3}}, "fruit.wieght", "'weight'"),
        ({"fruit": {"name": "apple", "weight": "heavy"}}, "fruit.weight", "heavy"),
        ({"fruit": {"name": "apple", "weight": -1}}, "fruit", "at least 0"),
        ({"fruit": {"name": "apple", "colour": "blue"}}, "fruit.colour", "red, green"),
        ({"fruit": {"name": "pear", "ripe": 1}}, "fruit.ripe", "true or false"),
        ({"box": 3}, "box", "3"),
        ({"box": {"width": True}}, "box.width", "whole number"),
        ({"box": {"names": "ab"}}, "box.names", "list"),
        ({"boxes": [{}, {"width": "x"}]}, "boxes[1].width", '"x"'),
        ({"sizes": [1]}, "sizes", "object"),
        ({"sizes": {"a": "x"}}, "sizes.a", '"x"'),
        ({"number": 2.5}, "number", "2.5"),
        ({"source": "sourc"}, "source", "'source'"),
        ({"source": {"seed": 3}}, "source", "source"),
    ],
)
def test_a_fault_says_where_and_what(data: dict[str, Any], where: str, told: str) -> None:
    reader = PartReader({"source": Source()})
    reader.record(Everything, data, "")
    (fault,) = reader.faults
    assert fault.where == where
    assert told in fault.what


def test_every_fault_is_reported_at_once() -> None:
    data = {"fruit": {"name": "apple", "weight": "x"}, "box": {"width": "x"}, "trails": 3, "number": "x"}
    with pytest.raises(IllegalDesign) as caught:
        record(data)
    assert {fault.where for fault in caught.value.faults} == {"fruit.weight", "box.width", "trails", "number"}
    assert "4 faults" in str(caught.value)


def test_what_has_no_default_must_be_given() -> None:
    @dataclass(frozen=True)
    class Needs:
        first: int
        second: int = 0

    reader = PartReader()
    reader.record(Needs, {"second": 1}, "")
    assert [fault.where for fault in reader.faults] == ["first"]


def test_stages_are_written_and_read_by_name() -> None:
    source = Source(7)
    stage = Everything(Pear(within=source), source=source, space=source)
    data = PartWriter({id(source): "first"}).record(stage)
    assert (data["source"], data["space"], data["fruit"]["within"]) == ("first", "first", "first")
    again = record(data, {"first": source})
    assert again.source is again.space is again.fruit.within is source  # type: ignore[attr-defined]
    assert inputs_of(again) == (source,)


def test_text_that_names_no_stage_stays_text() -> None:
    assert record({"space": "flexibert"}, {"first": Source()}).space == "flexibert"


def test_inputs_are_replaced_also_within_parts() -> None:
    source, new = Source(1), Source(2)
    stage = Everything(Pear(within=source), source=source)
    changed = with_inputs(stage, {id(source): new})
    assert changed == Everything(Pear(within=new), source=new)
    assert inputs_of(changed) == (new,)
    assert with_inputs(stage, {}) == stage


def test_objects_of_a_program_are_named_and_refuse_to_work() -> None:
    def mine() -> None:
        return None

    data = PartWriter().record(Everything(mine=mine, space=mine))
    assert data["mine"] == {"python": describe(mine)}
    again = record(json.loads(json.dumps(data)))
    assert again.mine == again.space == PythonObject(describe(mine))
    assert json.loads(json.dumps(PartWriter().record(again))) == data
    for act in (lambda: again.mine.sample, lambda: again.mine(3)):
        with pytest.raises(IllegalInput, match="mine"):
            act()
    assert not hasattr(again.mine, "__len__")  # what Python itself asks for is an ordinary answer


def test_mappings_of_options_are_their_own() -> None:
    first = Everything()
    assert first.sizes is not Everything().sizes
    assert hash(first) == hash(Everything())


def test_options_are_listed_with_type_default_and_help() -> None:
    shown = {one.name: (one.type, one.default, one.about) for one in options_of(Everything, without=["mine"])}
    assert shown["fruit"] == ("Fruit", "apple", "the fruit")
    assert shown["number"] == ("int | null", "null", "")
    assert shown["trials"] == ("int", "5", "how many")
    assert shown["boxes"][0] == "list of Box"
    assert shown.keys() & {"mine", "hidden"} == set()
    assert options_of(Apple)[1].type == "red | green"


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (["fruit"], {"fruit": 1}),
        (["fruit", "weight"], {"fruit": {"name": "apple", "weight": 1}}),
        (["box", "width"], {"fruit": "apple", "box": {"width": 1}}),
        (["box", "more", "width"], {"fruit": "apple", "box": {"more": {"width": 1}}}),
    ],
)
def test_one_option_is_set_by_its_path(path: list[str], expected: dict[str, Any]) -> None:
    data = {"fruit": "apple"}
    set_option(data, path, 1)
    assert data == {"fruit": "apple"} | expected


def test_a_setting_is_a_path_and_a_value() -> None:
    assert read_set("search.top-k = 3=4", str) == (["search", "top_k"], " 3=4")
    for text in ("search", "=3", "a..b=3"):
        with pytest.raises(IllegalInput, match=r"PART\.OPTION=VALUE"):
            read_set(text, str)
