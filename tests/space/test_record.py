import pytest

from formwright.core.errors import Fault, IllegalInput
from formwright.space import Choice, Fields, Record

RECORD = Record.of(heads=Choice((2, 4)), hidden=Choice((128, 256, 512)))


def test_a_record_multiplies() -> None:
    assert RECORD.count() == 6
    assert list(RECORD.enumerate())[:2] == [Fields.of(heads=2, hidden=128), Fields.of(heads=2, hidden=256)]
    assert RECORD.encode(Fields.of(heads=4, hidden=128)).tolist() == [0, 1, 1, 0, 0]


def test_the_empty_record_has_one_value_and_no_gene() -> None:
    empty = Record.of()
    assert (empty.count(), empty.width, list(empty.enumerate())) == (1, 0, [Fields.of()])
    assert list(empty.genes(Fields.of())) == []
    assert empty.to_json(Fields.of()) == {}


def test_only_fields_in_order_are_contained() -> None:
    assert RECORD.contains(Fields.of(heads=2, hidden=128))
    assert not RECORD.contains(Fields.of(hidden=128, heads=2))
    assert not RECORD.contains(Fields.of(heads=2))
    assert not RECORD.contains(Fields.of(heads=3, hidden=128))
    assert not RECORD.contains({"heads": 2, "hidden": 128})


def test_genes_carry_the_path() -> None:
    genes = list(RECORD.genes(Fields.of(heads=2, hidden=512), ("layers", 3)))
    assert [(gene.name, gene.value, gene.options) for gene in genes] == [
        ("layers[3].heads", 2, (2, 4)),
        ("layers[3].hidden", 512, (128, 256, 512)),
    ]


@pytest.mark.parametrize("name", ["keys", "pairs", "of", "_heads", "two words"])
def test_names_that_attribute_access_cannot_reach_are_refused(name: str) -> None:
    with pytest.raises(IllegalInput, match=f"'{name}' cannot name a field"):
        Record(((name, Choice((1,))),))


def test_repeated_names_are_refused() -> None:
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
