import gzip
from pathlib import Path

import pytest

from formwright.core.errors import IllegalInput
from formwright.tasks import text_files
from formwright.tasks.tables import read_table
from formwright.tasks.text_files import Faults, data_folder, find_file, read_lines, read_text


def read(path: Path) -> list[str]:
    return list(read_lines(path, Faults(str(path))))


@pytest.mark.parametrize("name", ["a.gz", "A.GZ"])
def test_lines_are_read_plain_and_packed(tmp_path: Path, name: str) -> None:
    file = tmp_path / "a.txt"
    file.write_bytes("\ufeffa\r\nb\u2028\x85c\n\nd".encode())
    assert read(file) == ["a\r\n", "b\u2028\x85c\n", "\n", "d"]
    file = tmp_path / name
    file.write_bytes(gzip.compress(b"a\nb\n", mtime=0))
    assert read(file) == ["a\n", "b\n"]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"fine\nna\xefve\n", "line 2: byte 3 is 0xEF, which is not UTF-8"),
        (b"fine\nends in \xc3", "line 2: byte 9 is 0xC3"),
        (b"fine\nfine\nnot\0fine\n", "line 3: a NUL byte"),
        ("text".encode("utf-16"), "line 1: UTF-16; expected UTF-8"),
    ],
)
def test_what_is_not_utf8_is_told_with_its_line(tmp_path: Path, content: bytes, expected: str) -> None:
    file = tmp_path / "a.txt"
    file.write_bytes(content)
    for reader in (read, read_text):
        with pytest.raises(IllegalInput) as error:
            reader(file)
        assert f"{file}, {expected}" in str(error.value)


def test_an_endless_line_does_not_fill_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_files, "_LONGEST", 10)
    file = tmp_path / "a.txt"
    file.write_bytes(b"0123456789\n" * 2)
    with pytest.raises(IllegalInput, match="line 1: longer than 10 bytes"):
        read(file)
    file.write_bytes(b"012345678\n" * 2)
    assert len(read(file)) == 2


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (gzip.compress(b"many words\n" * 100, mtime=0)[:-12], "cannot unpack .*: it is cut short"),
        (b"plain text", "cannot unpack .*: Not a gzipped file"),
        (gzip.compress(b"abc\n" * 100, mtime=0)[:12] + b"\xff" * 20, "cannot unpack"),
    ],
)
def test_damaged_gzip_is_told(tmp_path: Path, content: bytes, expected: str) -> None:
    file = tmp_path / "a.gz"
    file.write_bytes(content)
    with pytest.raises(IllegalInput, match=expected):
        read(file)


def test_missing_files_and_folders_are_told(tmp_path: Path) -> None:
    with pytest.raises(IllegalInput, match=r"cannot read .*nothing\.txt: No such file"):
        read(tmp_path / "nothing.txt")
    with pytest.raises(IllegalInput, match="it is a folder; expected a file"):
        read(tmp_path)


def test_faults_are_told_together_and_five_are_enough() -> None:
    faults = Faults("table")
    faults.end()
    for line in range(1, 5):
        faults.add(line, "bad")
    with pytest.raises(IllegalInput, match="perhaps more") as error:
        faults.add(9, "worse")
    assert str(error.value).splitlines()[1:] == [
        "  line 1: bad",
        "  line 2: bad",
        "  line 3: bad",
        "  line 4: bad",
        "  line 9: worse",
    ]
    faults = Faults("table", "row")
    faults.add(7, "bad")
    with pytest.raises(IllegalInput, match=r"^table, row 7: bad$"):
        faults.end()


def endless(path: Path, row: str, header: str = "") -> Path:
    """Write a small gzip file that unpacks to 160 MB and more: the same member 400 times."""
    member = gzip.compress((row * 100_000).encode(), mtime=0)
    path.write_bytes(gzip.compress(header.encode(), mtime=0) + member * 400)
    assert path.stat().st_size < 3_000_000
    return path


@pytest.mark.parametrize(
    ("name", "row", "header", "told"),
    [
        ("a.csv.gz", "a,b\n", "x,y\n", "line 1001: more than 1,000 lines"),
        ("a.tsv.gz", "a\tb\n", "x\ty\n", "line 1001: more than 1,000 lines"),
        ("a.json.gz", '{"x":1},', "[", "more than 1,000"),
        ("a.jsonl.gz", '{"x":1}\n', "", "more than 1,000"),
    ],
)
def test_reading_stops_at_a_bound_of_rows(name, row, header, told, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(text_files, "MOST_LINES", 1_000)
    with pytest.raises(IllegalInput, match=told):
        read_table(endless(tmp_path / name, row, header), ["x"])


@pytest.mark.parametrize(("name", "row", "header"), [("a.csv.gz", "a,b\n", "x,y\n"), ("a.json.gz", '{"x": 1}, ', "[")])
def test_reading_stops_at_a_bound_of_bytes(name, row, header, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(text_files, "MOST_BYTES", 1_000)
    monkeypatch.setattr(text_files, "MOST_WHOLE", 1_000)
    with pytest.raises(IllegalInput, match="more than 1,000 bytes"):
        read_table(endless(tmp_path / name, row, header), ["x"])


def test_files_are_found_plain_and_packed_in_a_folder_or_below_it(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "b.txt.gz").touch()
    assert data_folder(tmp_path, "inner") == data_folder(tmp_path / "inner", "inner") == tmp_path / "inner"
    assert find_file(tmp_path / "inner", "train set", "a.txt", "b.txt").name == "b.txt.gz"
    with pytest.raises(IllegalInput, match=r"no train set in .*one of a\.txt, a\.txt\.gz; .*--data"):
        find_file(tmp_path, "train set", "a.txt")
    for data, state in (("nowhere", "not there"), ("inner/b.txt.gz", "a file")):
        with pytest.raises(IllegalInput, match=f"is {state}; expected the folder inner"):
            data_folder(tmp_path / data, "inner")
