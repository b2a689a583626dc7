import pytest
from numpy.random import default_rng

from formwright.core.errors import Fault, IllegalInput
from formwright.space import Case, Choice, Fields, Record, Switch

SWITCH = Switch.of(sa=Choice(("sdp", "wma")), dsc=Record.of(kernel=Choice((5, 9, 15))), identity=Record.of())


def test_cases_add_up() -> None:
    assert SWITCH.count() == 6
    assert list(SWITCH.enumerate())[-2:] == [Case("dsc", Fields.of(kernel=15)), Case("identity", Fields.of())]


def test_only_the_genes_of_the_case_taken_exist() -> None:
    assert [(gene.name, gene.value) for gene in SWITCH.genes(Case("dsc", Fields.of(kernel=9)), ("mixer",))] == [
        ("mixer", "dsc"),
        ("mixer.dsc.kernel", 9),
    ]
    assert [gene.path for gene in SWITCH.genes(Case("identity", Fields.of()))] == [()]
    assert next(SWITCH.genes(Case("sa", "sdp"))).options == ("sa", "dsc", "identity")


def test_a_value_belongs_to_its_own_case() -> None:
    assert SWITCH.contains(Case("sa", "sdp"))
    assert not SWITCH.contains(Case("dsc", "sdp"))
    assert not SWITCH.contains(Case("lt", "sdp"))
    assert not SWITCH.contains("sa")


def test_inactive_cases_encode_as_zeros() -> None:
    assert SWITCH.encode(Case("sa", "wma")).tolist() == [1, 0, 0, 0, 1, 0, 0, 0]
    assert SWITCH.encode(Case("dsc", Fields.of(kernel=5))).tolist() == [0, 1, 0, 0, 0, 1, 0, 0]


def test_parents_with_different_cases_give_either_whole() -> None:
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
