"""Tables that are answered: their columns, and those that hold the text."""

from pathlib import Path

import pytest

from formwright.tasks.predicted_tables import read_whole_table

FILES = {
    "rows.csv": "number,second,first\n1,B,A\n2,D,C\n",
    "rows.jsonl": '{"number": "1", "second": "B", "first": "A"}\n{"number": "2", "second": "D", "first": "C"}\n',
}


@pytest.mark.parametrize("name", FILES)
def test_texts_come_in_the_order_in_which_their_columns_are_named(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text(FILES[name], encoding="utf-8")
    found = read_whole_table(path, ("second", "first"))
    assert found.texts == (("B", "A"), ("D", "C"))
    assert read_whole_table(path, ("first", "second")).texts == (("A", "B"), ("C", "D"))
    assert found.names == ("number", "second", "first")
    assert [dict(row) for row in found.rows] == [
        {"number": "1", "second": "B", "first": "A"},
        {"number": "2", "second": "D", "first": "C"},
    ]
