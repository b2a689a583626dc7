"""Tables that are answered: their columns, and those that hold the text."""

import csv
import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formwright.core.errors import IllegalInput
from formwright.tasks.tables import column_names, format_of, missing, read_table, read_whole_table

Write = Callable[[str, str], Path]
TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8)


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def call(name: str, content: str) -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode())
        return path

    return call


def refusal(path: Path, *columns: str, header: tuple[str, ...] = ()) -> str:
    with pytest.raises(IllegalInput) as error:
        read_table(path, columns or ("text", "label"), header)
    assert str(path) in str(error.value)
    return str(error.value)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.tsv", 'id\tlabel\ttext\n1\tx\ta "b\n\n2\ty\tc, d\n'),
        ("a.csv", 'id,label,text\n1,x,"a ""b"\n\n2,y,"c, d"\n'),
        ("a.csv", 'id,label,text\r\n1,x,"a ""b"\r\n\r\n2,y,"c, d"\r\n'),
        ("a.jsonl", '{"id": 1, "label": "x", "text": "a \\"b"}\n\n{"text": "c, d", "label": "y"}\n'),
    ],
)
def test_named_columns_are_read_in_the_order_asked_for(write: Write, name: str, content: str) -> None:
    table = read_table(write(name, content), ("text", "label"))
    assert table.rows == (('a "b', "x"), ("c, d", "y"))
    assert table.lines[1] - table.lines[0] == 2  # a blank line is skipped
    assert table.left_out == 0


@pytest.mark.parametrize("between", [",", ";", "\t", "|"])
def test_the_headings_tell_what_separates_the_fields_of_a_csv(write: Write, between: str) -> None:
    fields_of = [["id", "text", "label"], ["1", '"a, b; c | d\te"', "x"], ["2", "plain", "y"]]
    content = "\ufeff\n" + "\r\n".join(between.join(fields) for fields in fields_of)
    table = read_table(write("a.csv", content), ("text", "label"))
    assert (table.rows, table.lines) == ((("a, b; c | d\te", "x"), ("plain", "y")), (3, 4))
    assert column_names(write("a.csv", content)) == ("id", "text", "label")


ARRAY = [{"text": 'a "b] },\n', "label": True}, {"text": "é😀", "label": 0.5, "more": [{"deep": [1]}, "]"]}]


@pytest.mark.parametrize("indent", [None, 2])
def test_a_json_array_is_a_table(write: Write, indent: int | None) -> None:
    path = write("a.json", "\n " + json.dumps(ARRAY, indent=indent, ensure_ascii=False) + "\n")
    table = read_table(path, ("text", "label"))
    assert table.rows == (('a "b] },\n', "true"), ("é😀", "0.5"))
    assert table.lines == ((2, 2) if indent is None else (3, 7))
    assert column_names(path) == ("text", "label")


@pytest.mark.parametrize(
    ("content", "line", "expected"),
    [
        ("[]", None, "no rows"),
        ("[\n{", 2, "not JSON"),
        ('[\n{"text": "a"', 2, "not JSON"),
        ('[\n{"text": "a}', 2, "not JSON"),
        ('[{"text": "a", "label": 1},\n1]', 2, "expected an array of JSON objects"),
        ('[{"text": "a", "label": 1}\n{"text": "b", "label": 1}]', 2, "comma"),
        ('[{"text": "a", "label": 1}]\n[]', 2, "after the end of the array"),
        ('[{"text": "a", "label": 1},\n]', 2, "expected an array of JSON objects"),
        ('[{"text": "a", "label": 1, "label": 2}]', 1, "'label' twice"),
        ("[" * 200_000, 1, "expected an array of JSON objects"),
        ('[{"text": ' + "[" * 200_000, 1, "not JSON"),
        ('[{"text": "a", "label": 1},\n{"label": 1}]', 2, "no column called 'text'"),
        ('[{"text": "a\0"}]', 1, "NUL"),
    ],
)
def test_bad_json_arrays_are_told_with_their_line(write: Write, content: str, line: int | None, expected: str) -> None:
    message = refusal(write("a.json", content))
    assert expected in message
    assert line is None or f"line {line}: " in message


def test_a_json_array_that_is_not_utf8_is_told(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b'[{"text":\n"na\xefve"}]')
    message = refusal(path)
    assert "line 2" in message
    assert "0xEF" in message


def test_json_and_gzip_tables(write: Write, tmp_path: Path) -> None:
    assert read_table(write("a.json", '{"text": "a", "label": 1}\n'), ("text",)).rows == (("a",),)
    path = write("a.jsonl", '{"text": 3, "label": true}\n{"text": "é", "label": 0.5}')
    assert read_table(path, ("text", "label")).rows == (("3", "true"), ("é", "0.5"))
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(b"text,label\na,1\n"))
    assert read_table(path, ("text", "label")).rows == (("a", "1"),)
    assert column_names(path) == ("text", "label")


@given(rows=st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=5))
def test_what_others_wrote_is_read_unchanged(tmp_path_factory: pytest.TempPathFactory, rows) -> None:
    folder = tmp_path_factory.mktemp("tables")
    with (folder / "a.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, quoting=csv.QUOTE_ALL).writerows([("text", "label"), *rows])
    objects = [json.dumps({"text": text, "label": label}) for text, label in rows]
    (folder / "a.jsonl").write_text("\n".join(objects), encoding="utf-8")
    for name in ("a.csv", "a.jsonl"):
        assert read_table(folder / name, ("text", "label")).rows == tuple(rows)


@pytest.mark.parametrize("name", ["a.tsv", "a.csv"])
def test_a_missing_column_is_told_with_the_nearest(write: Write, name: str) -> None:
    between = "\t" if name == "a.tsv" else ","
    path = write(name, between.join(["sentence", "label"]) + "\n" + between.join("ab") + "\n")
    message = refusal(path, "sentense", "label")
    assert "line 1: no column called 'sentense'. Nearest: 'sentence'. The columns are: sentence, label" in message


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.jsonl"])
@pytest.mark.parametrize("content", ["", "\n\n"])
def test_an_empty_file_is_refused_with_what_was_expected(write: Write, name: str, content: str) -> None:
    message = refusal(write(name, content))
    assert "is empty" in message or "has no rows" in message
    assert "expected a table with the columns text, label" in message


@pytest.mark.parametrize(("name", "content"), [("a.csv", "text,label\n"), ("a.tsv", "text\tlabel\r\n")])
def test_headings_alone_are_refused(write: Write, name: str, content: str) -> None:
    assert "has no rows" in refusal(write(name, content))


def test_faults_are_told_together_but_not_all(write: Write) -> None:
    message = refusal(write("a.tsv", "text\tlabel\na\nb\t1\nc\t1\t2\n"))
    assert "2 faults" in message
    assert "line 2: 1 field; expected 2: text, label" in message
    assert "line 4: 3 fields; expected 2" in message
    message = refusal(write("a.tsv", "text\tlabel\n" + "a\n" * 50))
    assert message.count("line ") == 5
    assert "perhaps more" in message


def test_a_known_file_may_have_a_few_broken_rows(write: Write) -> None:
    path = write("a.tsv", "text\tlabel\n" + "a\t1\n" * 200 + "torn\n")
    table = read_table(path, ("text", "label"), broken=True)
    assert (len(table), table.left_out) == (200, 1)
    with pytest.raises(IllegalInput, match="3 of 5 rows have too few or too many fields"):
        read_table(write("b.tsv", "text\tlabel\n" + "a\t1\n" * 2 + "torn\n" * 3), ("text", "label"), broken=True)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("{", "not JSON"),
        ("[1, 2]", "a JSON array; expected one JSON object a line"),
        ('"text"', "a JSON string"),
        ("7", "a JSON number"),
        ("null", "a JSON null"),
        ("[" * 100_000, "not JSON"),
        ('{"text": ' + "9" * 5000 + ', "label": 1}', "not JSON (a value too large or too deep)"),
        ('{"text": null, "label": 1}', "'text' is a JSON null; expected text or a number"),
        ('{"text": ["a"], "label": 1}', "'text' is a JSON array"),
        ('{"text": {"a": 1}, "label": 1}', "'text' is a JSON object"),
        ('{"text": "\\ud83d", "label": 1}', "'text' holds half a letter"),
    ],
)
def test_bad_json_lines_are_told_with_their_line(write: Write, line: str, expected: str) -> None:
    message = refusal(write("a.jsonl", '{"text": "a", "label": 1}\n' + line + "\n"))
    assert "line 2: " + expected in message


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ('text,label\na,1\n"b,1\nc,2\n', "line 3: a quotation mark is opened here and never closed"),
        ('text,label\n"a"b,1\n', "line 2: not CSV"),
        (f'text,label\na,1\n"{"x" * 140_000}",1\n', "line 3: a field longer than 131,072 letters"),
    ],
)
def test_bad_csv_is_told_with_its_line(write: Write, content: str, expected: str) -> None:
    assert expected in refusal(write("a.csv", content))


def test_fields_of_tsv_and_csv(write: Write) -> None:
    assert read_table(write("a.tsv", "\ufefftext\tlabel\r\na\t1\r\n"), ("text", "label")).rows == (("a", "1"),)
    table = read_table(write("a.tsv", "a\t1\nb\t0"), ("label",), ("text", "label"))
    assert (table.rows, table.lines) == ((("1",), ("0",)), (1, 2))
    table = read_table(write("a.csv", 'text,label\n"a\nb",1\nc,2\n'), ("text", "label"))
    assert (table.rows, table.lines) == ((("a\nb", "1"), ("c", "2")), (2, 4))
    assert len(read_table(write("a.tsv", f"text\tlabel\n{'x' * 140_000}\t1\n"), ("text",)).rows[0][0]) == 140_000
    path = write("a.csv", "text;label;size, weight, depth, height\na;x;1\nb;y;2\n")
    assert read_table(path, ("text", "label")).rows == (("a", "x"), ("b", "y"))
    assert "no column called 'txt'. Nearest: 'text'" in refusal(write("b.csv", "text;label\na;x\n"), "txt", "label")


def test_keys_and_columns_that_are_missing_or_twice(write: Write) -> None:
    path = write("a.jsonl", '{"text": "a", "label": 1}\n{"txt": "b", "label": 1}\n')
    assert "line 2: no column called 'text'. Nearest: 'txt'." in refusal(path)
    assert "2 columns are called 'text'" in refusal(write("a.csv", "text,text,label\na,b,1\n"))
    path = write("a.jsonl", '{"text": "a", "label": 1, "label": 2}\n')
    assert "line 1: not JSON (the key 'label' twice); expected one JSON object a line" in refusal(path)
    assert ".csv, .tsv, .jsonl" in refusal(write("a.txt", "text"))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a.csv", "csv"),
        ("b.TSV.gz", "tsv"),
        ("B.CSV.GZ", "csv"),
        ("c.jsonl", "jsonl"),
        ("d.ndjson", "jsonl"),
        ("e.gz", None),
        ("f", None),
    ],
)
def test_the_name_tells_the_format(name: str, expected: str | None) -> None:
    assert format_of(Path(name)) == expected


def test_columns_are_listed(write: Write) -> None:
    assert column_names(write("a.jsonl", '{"a": 1, "b": 2}\n')) == ("a", "b")
    assert column_names(write("a.tsv", "a\tb\n")) == ("a", "b")
    assert column_names(write("empty.csv", "")) == column_names(write("empty.jsonl", "")) == ()
    assert missing("zzz", [f"c{number}" for number in range(30)]).endswith("c19, ...")


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
