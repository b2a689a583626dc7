from typing import Any

import numpy as np
import pytest
from numpy.random import default_rng

from formwright.core.errors import Fault, IllegalInput
from formwright.space import Case, Choice, Fields, Record, Switch

RECORD = Record.of(heads=Choice((2, 4)), hidden=Choice((128, 256, 512)))
SWITCH = Switch.of(sa=Choice(("sdp", "wma")), dsc=Record.of(kernel=Choice((5, 9, 15))), identity=Record.of())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "list of options"),
        ("ab", "list of options"),
        (3, "list of options"),
        ((2, 2), "distinct"),
        ((1, True), "distinct"),
        (([1],), "neither a JSON scalar"),
        ((((1,),),), "neither a JSON scalar"),
        ((float("nan"),), "neither a JSON scalar"),
    ],
)
def test_options_that_json_cannot_tell_apart_are_refused(options: Any, message: str) -> None:
    with pytest.raises(IllegalInput, match=message):
        Choice(options)


def test_a_choice_is_counted_encoded_and_read() -> None:
    choice = Choice((2, "four", None, (1, 2)))
    assert (choice.count(), list(choice.enumerate())) == (4, [2, "four", None, (1, 2)])
    assert choice.contains((1, 2))
    assert Choice(range(2)) == Choice([0, 1]) == Choice((0, 1))  # type: ignore[arg-type]
    assert not choice.contains([1, 2])
    assert not choice.contains(3)
    assert not Choice((0, 1)).contains(True)
    assert not Choice(((0, 1),)).contains((False, 1))
    assert Choice((False, True)).contains(True)
    assert Choice((2, 4, 8)).encode(4).tolist() == [0.0, 1.0, 0.0]
    assert Choice((2, 4, 8)).decode(np.array([0.1, -2.0, 0.3])) == 8
    faults: list[Fault] = []
    assert Choice(((1, 2), 3)).from_json([1, 2], (), faults) == (1, 2)
    assert type(Choice((1.0,)).from_json(1, (), faults)) is float
    assert faults == []
    Choice((2, (1, 2))).from_json(True, ("heads",), faults)
    assert faults == [Fault("heads", "is True; allowed: 2, [1, 2]")]


@pytest.mark.parametrize("name", ["keys", "pairs", "of", "_heads", "two words"])
def test_names_that_attribute_access_cannot_reach_are_refused(name: str) -> None:
    with pytest.raises(IllegalInput, match=f"'{name}' cannot name a field"):
        Record(((name, Choice((1,))),))


@pytest.mark.parametrize("kind", [Record, Switch])
@pytest.mark.parametrize(
    "parts", [{"heads": Choice((1,))}, Choice((1,)), (("heads", 3),), ((3, Choice((1,))),), ("ab",)]
)
def test_parts_without_names_are_refused_with_advice(kind: Any, parts: Any) -> None:
    with pytest.raises(IllegalInput, match=rf"{kind.__name__}\.of\("):
        kind(parts)


def test_a_record_multiplies_and_holds_its_fields_in_order() -> None:
    assert RECORD.count() == 6
    assert list(RECORD.enumerate())[:2] == [Fields.of(heads=2, hidden=128), Fields.of(heads=2, hidden=256)]
    assert RECORD.encode(Fields.of(heads=4, hidden=128)).tolist() == [0, 1, 1, 0, 0]
    empty = Record.of()
    assert (empty.count(), empty.width, list(empty.enumerate())) == (1, 0, [Fields.of()])
    assert (list(empty.genes(Fields.of())), empty.to_json(Fields.of())) == ([], {})
    assert RECORD.contains(Fields.of(heads=2, hidden=128))
    assert not RECORD.contains(Fields.of(hidden=128, heads=2))
    assert not RECORD.contains(Fields.of(heads=2))
    assert not RECORD.contains(Fields.of(heads=3, hidden=128))
    assert not RECORD.contains({"heads": 2, "hidden": 128})
    genes = list(RECORD.genes(Fields.of(heads=2, hidden=512), ("layers", 3)))
    assert [(gene.name, gene.value, gene.options) for gene in genes] == [
        ("layers[3].heads", 2, (2, 4)),
        ("layers[3].hidden", 512, (128, 256, 512)),
    ]
    with pytest.raises(IllegalInput, match="distinct"):
        Record((("heads", Choice((1,))), ("heads", Choice((2,)))))


def test_all_faults_of_json_are_listed() -> None:
    faults: list[Fault] = []
    RECORD.from_json({"headz": 2, "hidden": 100}, ("layers", 0), faults)
    assert faults == [
        Fault("layers[0].headz", "is not a field here; did you mean 'heads'?"),
        Fault("layers[0].heads", "is missing"),
        Fault("layers[0].hidden", "is 100; allowed: 128, 256, 512"),
    ]
    faults.clear()
    RECORD.from_json([2], (), faults)
    assert faults == [Fault("", "is [2]; expected an object with heads, hidden")]


def test_cases_add_up_and_have_genes_of_their_own() -> None:
    assert SWITCH.count() == 6
    assert list(SWITCH.enumerate())[-2:] == [Case("dsc", Fields.of(kernel=15)), Case("identity", Fields.of())]
    assert [(gene.name, gene.value) for gene in SWITCH.genes(Case("dsc", Fields.of(kernel=9)), ("mixer",))] == [
        ("mixer", "dsc"),
        ("mixer.dsc.kernel", 9),
    ]
    assert [gene.path for gene in SWITCH.genes(Case("identity", Fields.of()))] == [()]
    assert next(SWITCH.genes(Case("sa", "sdp"))).options == ("sa", "dsc", "identity")
    assert SWITCH.contains(Case("sa", "sdp"))
    assert not SWITCH.contains(Case("dsc", "sdp"))
    assert not SWITCH.contains(Case("lt", "sdp"))
    assert not SWITCH.contains("sa")
    assert SWITCH.encode(Case("sa", "wma")).tolist() == [1, 0, 0, 0, 1, 0, 0, 0]
    assert SWITCH.encode(Case("dsc", Fields.of(kernel=5))).tolist() == [0, 1, 0, 0, 0, 1, 0, 0]
    rng = default_rng(0)
    first, second = Case("sa", "wma"), Case("dsc", Fields.of(kernel=5))
    assert {SWITCH.crossover(first, second, rng) for _ in range(50)} == {first, second}
    assert {SWITCH.crossover(first, Case("sa", "sdp"), rng).value for _ in range(50)} == {"sdp", "wma"}


@pytest.mark.parametrize("cases", [(), (("sa", Choice((1,))), ("sa", Choice((2,))))])
def test_tags_must_be_there_and_distinct(cases: tuple[tuple[str, Choice], ...]) -> None:
    with pytest.raises(IllegalInput, match="tags must be distinct"):
        Switch(cases)


def test_json_has_one_key_and_faults_name_the_way_to_them() -> None:
    assert SWITCH.to_json(Case("dsc", Fields.of(kernel=9))) == {"dsc": {"kernel": 9}}
    faults: list[Fault] = []
    SWITCH.from_json({"dsc": {"kernel": 7}}, ("layers", 1, "mixer"), faults)
    SWITCH.from_json({"lt": 7}, ("layers", 2, "mixer"), faults)
    SWITCH.from_json({"sa": "sdp", "dsc": {}}, ("layers", 3, "mixer"), faults)
    assert faults == [
        Fault("layers[1].mixer.dsc.kernel", "is 7; allowed: 5, 9, 15"),
        Fault("layers[2].mixer", "has case 'lt'; allowed: sa, dsc, identity"),
        Fault("layers[3].mixer", "is {'sa': 'sdp', 'dsc': {}}; expected an object with one key of sa, dsc, identity"),
    ]
