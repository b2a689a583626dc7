"""Scores out of a table."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.evaluate.toy import card

from formwright.core.errors import IllegalInput
from formwright.core.records import Budget, Observation, Request, Spent
from formwright.evaluate.context import Context
from formwright.evaluate.tabular import Tabular, read_table, write_table

CARD = card(32)
ROW = {"digest": CARD.digest, "steps": 5, "metrics": {"accuracy": 0.5}}
TABLE = Tabular({CARD.digest: {steps: Observation({"accuracy": steps / 100}) for steps in (5, 50, 10)}})


def lines(folder: Path, *rows: object) -> Path:
    path = folder / "table.jsonl"
    path.write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows), encoding="utf-8")
    return path


@pytest.mark.parametrize(("steps", "expected"), [(5, 0.05), (10, 0.1), (50, 0.5), (None, 0.5)])
def test_a_budget_chooses_the_row(steps: int | None, expected: float) -> None:
    assert TABLE.evaluate(Request(CARD, Budget(steps)), Context()).metrics == {"accuracy": expected}


def test_steps_that_are_not_in_the_table_are_refused() -> None:
    with pytest.raises(IllegalInput, match="after 5, 10, 50 steps, not after 7"):
        TABLE.evaluate(Request(CARD, Budget(7)), Context())


def test_a_design_that_is_not_in_the_table_is_refused() -> None:
    other = card(16)
    with pytest.raises(IllegalInput, match=f"table of 1 designs has none with the digest {other.digest}"):
        TABLE.evaluate(Request(other), Context())


finite = st.floats(allow_nan=False, allow_infinity=False)
observations = st.builds(
    lambda metrics, seconds, steps, macs: (steps, Observation(metrics, Spent(seconds, steps, macs))),
    st.dictionaries(st.text(), finite, min_size=1, max_size=3),
    finite,
    st.integers(0, 10**9),
    st.integers(0, 10**20),
)


@given(
    st.dictionaries(st.text(), st.lists(observations, min_size=1, max_size=3, unique_by=lambda one: one[0]), min_size=1)
)
def test_what_is_written_is_read(
    tmp_path_factory: pytest.TempPathFactory, table: dict[str, list[tuple[int, Observation]]]
) -> None:
    path = tmp_path_factory.getbasetemp() / "table.jsonl"
    write_table(path, [(digest, steps, found) for digest, rows in table.items() for steps, found in rows])
    assert read_table(path).rows == {digest: dict(rows) for digest, rows in table.items()}


def test_costs_may_be_left_out_and_lines_empty(tmp_path: Path) -> None:
    found = read_table(lines(tmp_path, ROW, "", {**ROW, "steps": 6, "seconds": 2.5}, ""))
    assert found.rows[CARD.digest][5].spent == Spent(0.0, 5)
    assert found.evaluate(Request(CARD), Context()).spent == Spent(2.5, 6)


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "[]",
        "7",
        "null",
        {},
        {**ROW, "steps": None},
        {**ROW, "steps": -1},
        {**ROW, "steps": 2.5},
        {**ROW, "steps": float("inf")},
        {**ROW, "metrics": "accuracy"},
        {**ROW, "metrics": {"accuracy": float("nan")}},
        {**ROW, "metrics": {"accuracy": "high"}},
        {**ROW, "seconds": "long"},
        {**ROW, "macs": -3},
        ROW,
    ],
    ids=str,
)
def test_a_bad_line_is_named_with_its_file(line: object, tmp_path: Path) -> None:
    path = lines(tmp_path, ROW, "", line)
    with pytest.raises(
        IllegalInput, match=r"table\.jsonl, line 3: expected an object with \"digest\", \"steps\""
    ) as caught:
        read_table(path)
    assert str(path) in str(caught.value)


def test_a_design_that_stands_twice_is_named(tmp_path: Path) -> None:
    with pytest.raises(IllegalInput, match=r"line 2: .* stands above already after 5 steps"):
        read_table(lines(tmp_path, ROW, {**ROW, "metrics": {"accuracy": 0.7}}))


def test_files_without_rows_are_refused(tmp_path: Path) -> None:
    with pytest.raises(IllegalInput, match="holds no rows"):
        read_table(lines(tmp_path, ""))
    with pytest.raises(IllegalInput, match=r"cannot read .*absent"):
        read_table(tmp_path / "absent.jsonl")
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(IllegalInput, match=r"cannot read .*binary"):
        read_table(tmp_path / "binary")
