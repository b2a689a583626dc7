from typing import Any

import pytest
from numpy.random import default_rng

from formwright.core.errors import Fault, IllegalInput
from formwright.space import Choice, Row, mutate, neighbours

# two groups of two; the second is shorter in a row of three
PART = Row((Choice((1, 2)), Choice((2, 3, 4))), lengths=(2, 3, 4), tied=2)


def test_every_length_adds_the_product_of_its_groups() -> None:
    assert PART.count() == 2 + 2 * 3 + 2 * 3
    assert Row((), (0,)).count() == 1


def test_values_have_an_entry_for_each_member_and_groups_are_equal() -> None:
    assert list(PART.enumerate())[:4] == [(1, 1), (2, 2), (1, 1, 2), (1, 1, 3)]
    assert PART.contains((1, 1, 3, 3))
    assert not PART.contains((1, 1, 3, 4))
    assert not PART.contains((3, 3))  # a value of the other part
    assert not PART.contains((1,))
    assert not PART.contains([1, 1])


def test_each_group_is_a_gene_with_the_options_of_its_own_part() -> None:
    assert [(gene.name, gene.value, gene.options) for gene in PART.genes((1, 1, 3), ("layers",))] == [
        ("layers", 3, (2, 3, 4)),
        ("layers[0]", 1, (1, 2)),
        ("layers[2]", 3, (2, 3, 4)),
    ]


def test_a_change_reaches_the_whole_group() -> None:
    children = {mutate(PART, (1, 1, 3, 3), default_rng(seed)) for seed in range(200)}
    assert children == {(1, 1), (1, 1, 3), (2, 2, 3, 3), (1, 1, 2, 2), (1, 1, 4, 4)}


def test_a_longer_row_copies_a_member_only_where_its_part_has_it() -> None:
    assert next(neighbours(PART, (2, 2))) == (2, 2, 2)
    assert next(neighbours(PART, (1, 1))) == (1, 1, 2)


def test_a_child_has_the_length_of_a_parent_and_takes_the_tail_from_the_longer() -> None:
    rng = default_rng(0)
    children = {PART.crossover((1, 1), (2, 2, 4, 4), rng) for _ in range(100)}
    assert children == {(1, 1), (2, 2), (1, 1, 4, 4), (2, 2, 4, 4)}


def test_faults_of_json_are_told_with_their_place() -> None:
    def faults(data: Any) -> list[Fault]:
        found: list[Fault] = []
        PART.from_json(data, ("layers",), found)
        return found

    assert faults([1, 1, 3, 3]) == []
    assert faults([1, 2]) == [Fault("layers", "has entries that differ within a group of 2")]
    assert faults([1]) == [Fault("layers", "has 1 entries; allowed: 2, 3, 4")]
    assert faults(None) == [Fault("layers", "is None; expected a list")]
    assert [fault.where for fault in faults([1, 1, 9, 9])] == ["layers[2]", "layers[3]"]


@pytest.mark.parametrize(
    ("parts", "lengths", "tied", "message"),
    [
        (1, (2,), 1, "2 members in groups of 1 need 2 parts, not 1"),
        (3, (4,), 2, "4 members in groups of 2 need 2 parts, not 3"),
        (0, (), 1, "at least one"),
        (2, (2, 2), 1, "distinct"),
        (2, (-1, 2), 1, "not negative"),
        (2, (2,), 0, "at least one member"),
    ],
)
def test_impossible_rows_are_refused(parts: int, lengths: tuple[int, ...], tied: int, message: str) -> None:
    with pytest.raises(IllegalInput, match=message):
        Row((Choice((1, 2)),) * parts, lengths, tied)
