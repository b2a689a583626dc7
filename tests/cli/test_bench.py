import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.conftest import Run
from tests.evaluate.fake_table import MARKS, fake_table

from formwright.cli import bench as command
from formwright.cli.bench import _drawn, _found, _headline
from formwright.study import contest
from formwright.testing.toy_problem import small

HERE = ("--runs", 3, "--evaluations", 8, "--workers", 1)


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write a table of a small space, which is known for the while."""
    path = tmp_path / "table.npz"
    monkeypatch.setattr("formwright.evaluate.benchmark.load_space", {"small": small()}.__getitem__)
    fake_table(small(), 200).write(path)
    return path


def test_json_has_the_methods_with_their_curves(run: Run, table: Path) -> None:
    done = run("bench", "flexi", "--methods", "random,local", *HERE, "--table", table, "--json")
    assert (done.code, done.err) == (0, "")
    data = done.data
    assert (data["benchmark"], data["tabulated"], data["designs"], data["steps"]) == ("flexi", 200, 342, MARKS[-1])
    assert set(data["methods"]) == {"random", "local"}
    for found in data["methods"].values():
        low, high = found["interval"]
        assert low <= found["final"] <= high <= data["best"]
        assert len(found["curve"]) == 8
        assert found["curve"] == sorted(found["curve"])
        assert found["runs"] == 3
    finals = [found["final"] for found in data["methods"].values()]
    assert finals == sorted(finals, reverse=True)
    assert data["noise"]["seeds"] == 3


def test_the_table_has_a_row_for_each_method(run: Run, table: Path) -> None:
    done = run("bench", "flexi", "--methods", "random, halving", *HERE, "--table", table).printed(
        "200 of the 342 designs of small"
    )
    rows = {line.split()[0]: line for line in done.out.splitlines() if line.split()}
    for name in ("random", "halving"):
        assert "█" in rows[name] or "▇" in rows[name] or "▆" in rows[name]
        assert "±0." in rows[name]


def test_all_methods_but_slow_and_absent_ones_take_part(run: Run, table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    every = [contest.Method("random", "random"), contest.Method("gp", "gp")]
    monkeypatch.setattr(contest, "all_methods", lambda: every)
    done = run("bench", "flexi", *HERE, "--table", table, "--json")
    assert list(done.data["methods"]) == ["random"]
    assert done.err == "left out, because slow or not installed: gp\n"


@pytest.mark.parametrize(
    ("options", "fact"),
    [
        (("flexi", "--methods", "random", "--evaluations", 201), "the table has 200 designs"),
        (("flexi", "--methods", "random,loca"), "no method is called 'loca'. Nearest: 'local'."),
        (("nasbench",), "nasbench"),
        (("flexi", "--table", "absent.npz"), "cannot read the table of scores"),
    ],
)
def test_users_errors(options: tuple[object, ...], fact: str, run: Run, table: Path) -> None:
    run("bench", "--table", table, *options).refused(fact)


def test_kept_searches_are_not_repeated(run: Run, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    call = ("bench", "flexi", "--methods", "random", *HERE, "--table", table, "--results", tmp_path / "runs", "--json")
    first = run(*call).data
    assert len((tmp_path / "runs").read_text().splitlines()) == 3
    monkeypatch.setattr("formwright.study.contest.replay", None)  # whoever searches fails
    assert run(*call).data == first


def test_kept_rows_that_the_table_lacks_are_a_users_error(run: Run, table: Path, tmp_path: Path) -> None:
    line = ("bench", "flexi", "--methods", "random", *HERE, "--table", table, "--results", tmp_path / "runs")
    assert run(*line).code == 0
    kept = (tmp_path / "runs").read_text(encoding="utf-8")
    (tmp_path / "runs").write_text(re.sub(r'"best": \[\d+', '"best": [200', kept), encoding="utf-8")
    run(*line).refused("line 1: the row 200 is beyond the 200 rows of the table")


def test_progress_is_printed_now_and_then(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(0, 1000, 4))
    monkeypatch.setattr(command.time, "monotonic", lambda: next(clock))
    replays: Iterator[int] = iter(range(6))
    assert list(command._told(replays, 10, 20)) == list(range(6))  # type: ignore[arg-type]
    assert capsys.readouterr().err == "13 of 20 searches, 0:28 left\n16 of 20 searches, 0:16 left\n"


def test_a_curve_is_drawn_from_the_least_to_the_most() -> None:
    assert _drawn([0.0, 1.0], 0.0, 1.0) == "▁▁▁▁▁█████"
    assert _drawn([number / 9 for number in range(10)], 0.0, 1.0) == "▁▂▃▃▄▅▆▆▇█"
    assert _drawn([0.5] * 100, 0.5, 0.5) == "▁" * 10
    assert _drawn([0.25], 0.0, 0.5) == "▅" * 10


def test_how_soon_the_best_was_found() -> None:
    assert _found({"evaluations": 41.0, "share": 0.9}) == "41, 90%"
    assert _found({"evaluations": None, "share": 0.25}) == "25%"


def test_the_headline_says_what_was_searched() -> None:
    facts = {"task": "t", "objective": "accuracy:max", "steps": 300, "space": "s", "best": 0.9}
    facts |= {"tabulated": 9312, "designs": 9312, "runs": 50, "evaluations": 100}
    whole = "t, accuracy:max after 300 steps: all 9,312 designs of s, the best 0.9000; for each method 50 x 100"
    assert _headline(facts).startswith(whole)
    assert "2,000 of the 9,312 designs of s" in _headline({**facts, "tabulated": 2000})
