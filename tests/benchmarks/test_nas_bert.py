"""The benchmark of NAS-BERT: its results are kept line by line, and its parts run on a tiny compression."""

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from tests.cli.blocks import line
from tests.cli.training import table
from tests.compress.blockwise.small import pretended

from formwright.cli.app import main

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def benchmark(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """Import the script as Python runs it, its folder first on the path."""
    monkeypatch.syspath_prepend(str(FOLDER))
    import nas_bert

    yield nas_bert
    for name in [name for name in sys.modules if name.startswith("nas_bert")]:
        del sys.modules[name]


def test_results_are_computed_once_and_a_cut_line_is_passed_over(benchmark: ModuleType, tmp_path: Path) -> None:
    results = benchmark.Results(tmp_path / "results.jsonl")
    assert results.kept("tau", "0/1", lambda: {"loss": 1.0})["loss"] == 1.0
    assert results.kept("tau", "0/1", lambda: pytest.fail("it was computed before"))["loss"] == 1.0
    with results.path.open("a", encoding="utf-8") as file:
        file.write('{"part": "tau", "key": "0/2", "lo')
    assert [row["key"] for row in results.rows("tau")] == ["0/1"]
    assert results.kept("tau", "0/2", lambda: {"loss": 2.0})["loss"] == 2.0
    assert results.rows("latency") == []


def test_a_correlation_lies_in_its_interval(benchmark: ModuleType) -> None:
    rows = [{"a": number, "b": number + 3 * (number % 2)} for number in range(20)]
    found, low, high = benchmark.correlation(rows, "a", "b")
    assert low <= found <= high <= 1
    assert found > 0.5


@pytest.mark.slow
@pytest.mark.long
def test_every_part_runs_and_goes_on(
    benchmark: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("formwright.cli.compress_blocks.quick", lambda *_: pretended)
    monkeypatch.setattr("nas_bert_kit.scores.quick", lambda *_: pretended)
    with pytest.raises(SystemExit):
        main(line(tmp_path))
    task = tmp_path / "mine.csv"
    task.write_text(table(tmp_path).read_text(encoding="utf-8").replace("words,b", "sentence,label"), encoding="utf-8")
    capsys.readouterr()
    options = [str(tmp_path / "out"), "--results", str(tmp_path / "results.jsonl"), "--students", "5", "--pairs", "1"]
    options += ["--steps", "2", "--tasks", str(task), "--epochs", "0.3", "--rows", "40", "--length", "12"]
    benchmark.main(options)
    first = capsys.readouterr().out
    for place in ("scores.train", "students.train", "students.fit"):
        monkeypatch.setattr(f"nas_bert_kit.{place}", lambda *_: pytest.fail("it was computed before"))
    benchmark.main(options)
    assert capsys.readouterr().out == first
    assert "over 5 students" in first
    assert all(f"{size} {arm} " in first for size in ("3k", "6k") for arm in ("found", "found-fresh", "bert"))
