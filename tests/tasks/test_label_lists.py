import pytest

from formwright.core.errors import IllegalInput
from formwright.tasks.label_lists import gathered, label_columns, labels_in, separator_of
from formwright.tasks.tables import Table


@pytest.mark.parametrize(
    ("cells", "separator"),
    [
        (("a|b;c", "d"), "|"),
        (("a;b, c", "d"), ";"),
        (("a,b", ""), ","),
        (("a", "b"), ","),
        (('["x|y", "z"]', "a;b"), ";"),
    ],
)
def test_the_first_separator_that_occurs_separates_all_cells(cells: tuple[str, ...], separator: str) -> None:
    assert separator_of(cells) == separator


@pytest.mark.parametrize(
    ("cell", "labels"),
    [
        ("rust| brake |rust|", ("rust", "brake")),
        ("", ()),
        ("[]", ()),
        ('["a, b", "c", 3]', ("a, b", "c", "3")),
        ("['a', 'b c']", ("a", "b c")),  # as pandas writes a list
        ("[" * 5000 + "]", ("[" * 4999,)),  # too deep for JSON: one strange name, and no crash
    ],
)
def test_a_cell_holds_labels(cell: str, labels: tuple[str, ...]) -> None:
    assert labels_in(cell, "|") == labels


def test_columns_of_flags_become_a_column_of_lists() -> None:
    table = Table("file.csv", (("x", "1", "0"), ("y", "TRUE", "1.0"), ("z", "0", "false")), (2, 3, 4))
    assert gathered(table, ("a", "b, c")).rows == (("x", '["a"]'), ("y", '["a", "b, c"]'), ("z", "[]"))


def test_a_flag_is_0_or_1() -> None:
    with pytest.raises(IllegalInput, match=r"file\.csv, line 3: '2' in column 'b'"):
        gathered(Table("file.csv", (("x", "1", "0"), ("y", "1", "2")), (2, 3)), ("a", "b"))
    with pytest.raises(IllegalInput, match="twice"):
        gathered(Table("file.csv", (("x", "1", "0"),), (2,)), ("a", "a"))


def test_columns_are_named_with_commas() -> None:
    assert label_columns(" a, b,,c ") == ("a", "b", "c")
