import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from formwright.core.errors import IllegalInput
from formwright.study.contest import ContestFile, Replay

FIRST, SECOND = Replay("random", 0, (1, 2), 0.5), Replay("local", 1, (3, 3), 0.25)


def test_what_is_kept_is_read_and_passed_on(tmp_path: Path) -> None:
    file = ContestFile(tmp_path / "runs.jsonl", "a")
    assert file.read() == []
    assert list(file.keep(iter([FIRST]))) == [FIRST]
    assert list(file.keep(iter([SECOND]))) == [SECOND]
    assert file.read() == [FIRST, SECOND]


def test_a_search_is_written_before_it_is_passed_on(tmp_path: Path) -> None:
    file = ContestFile(tmp_path / "runs.jsonl", "a")
    for found in file.keep(iter([FIRST, SECOND])):
        assert file.read()[-1] == found


def test_searches_on_another_table_are_left_alone(tmp_path: Path) -> None:
    here, there = (ContestFile(tmp_path / "runs.jsonl", table) for table in ("a", "b"))
    list(here.keep(iter([FIRST])))
    list(there.keep(iter([SECOND])))
    assert (here.read(), there.read()) == ([FIRST], [SECOND])


def test_a_line_that_was_cut_short_is_forgotten(tmp_path: Path) -> None:
    file = ContestFile(tmp_path / "runs.jsonl", "a")
    list(file.keep(iter([FIRST, SECOND])))
    file.path.write_bytes(file.path.read_bytes()[:-5])
    assert file.read() == [FIRST]
    list(file.keep(iter([SECOND])))
    assert file.read() == [FIRST, SECOND]


@pytest.mark.parametrize("kept", [0, 1, 5, 20])
def test_a_first_line_that_was_cut_short_is_forgotten(kept: int, tmp_path: Path) -> None:
    file = ContestFile(tmp_path / "runs.jsonl", "a")
    list(file.keep(iter([FIRST])))
    file.path.write_bytes(file.path.read_bytes()[:kept])
    assert file.read() == []
    list(file.keep(iter([SECOND])))
    assert file.read() == [SECOND]


@pytest.mark.parametrize(
    "text",
    ["no JSON\n", "{}\n", "[1]\n", '{"table": "a", "method": "random"}\n', "one line of my notes", '{"tables": 3}'],
)
def test_other_files_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "runs.jsonl"
    path.write_text(text)
    with pytest.raises(IllegalInput, match=r"runs\.jsonl"):
        ContestFile(path, "a").read()


def test_a_file_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(IllegalInput, match=r"cannot write .*absent"):
        list(ContestFile(tmp_path / "absent" / "runs.jsonl", "a").keep(iter([FIRST])))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"method": 7}, "method must be a name"),
        ({"seed": "0"}, "seed is '0'"),
        ({"best": 3}, "best a list of rows"),
        ({"best": [1, 2.5]}, "a row is 2.5"),
        ({"best": [-2, 1]}, "a row is -2"),
        ({"best": [1, 10]}, "the row 10 is beyond the 10 rows of the table"),
        ({"seconds": None}, "seconds is None"),
        ({"seconds": 10**400}, "too large"),
        ({"more": 1}, "must have the fields"),
    ],
)
def test_a_line_that_is_no_search_is_refused(change: dict[str, Any], told: str, tmp_path: Path) -> None:
    file = ContestFile(tmp_path / "runs.jsonl", "a", 10)
    list(file.keep(iter([Replay("random", 0, (-1, 9), 0.5)])))
    with file.path.open("a") as more:
        more.write(json.dumps({"table": "a", **asdict(SECOND), **change}) + "\n")
    with pytest.raises(IllegalInput, match=rf"runs\.jsonl.*line 2: .*{told}"):
        file.read()


def test_a_line_of_many_brackets_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    path.write_text('{"table": ' + "[" * 100_000 + "\n")
    with pytest.raises(IllegalInput, match="line 1: "):
        ContestFile(path, "a").read()


def test_a_file_that_another_adds_to_is_refused_and_left_alone(tmp_path: Path) -> None:
    file = ContestFile(tmp_path / "runs.jsonl", "a")
    first = file.keep(iter([FIRST, SECOND]))
    next(first)
    with pytest.raises(IllegalInput, match=r"another process works on .*runs\.jsonl; wait for it"):
        list(file.keep(iter([SECOND])))
    assert list(first) == [SECOND]
    assert file.read() == [FIRST, SECOND]
    assert list(file.keep(iter([]))) == []  # the lock ends with its holder
