"""What is said when a run of a search is over."""

import json
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Run
from tests.pipeline.cases import create, films, films_study

from formwright.cli import run_view
from formwright.cli.run_view import print_result, resumable, source_words
from formwright.core.errors import Unsuccessful
from formwright.core.rng import derive
from formwright.nn.hf.model_folder import CARD
from formwright.pipeline.delivered import Delivered
from formwright.pipeline.run import Interrupted, PipelineRun
from formwright.pipeline.run_folder import Place
from formwright.result import FoundModel, Result
from formwright.study.stop import Stop
from formwright.testing.spaces import small

FOUND = Delivered("trial-3", "best", "a", "x", 900, 60, {"accuracy": 0.75, "loss": 0.5}, None, 3)
PLAIN = Delivered("baseline", "baseline", "b", "y", 1000, 60, {"accuracy": 0.5, "loss": 0.75}, None, None)


@pytest.fixture
def over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Give a function that prints a run whose work is done already, and came to these models."""
    (tmp_path / "a b").mkdir()
    made = films(tmp_path / "a b", trials=4)
    place = create(tmp_path / "a b" / "films", made)
    path = place.folder / "models" / "trial-3"
    path.mkdir(parents=True)
    space = small()
    (path / CARD).write_text(json.dumps(space.card(space.sample(derive(0))).to_json()))

    def call(*found: Delivered) -> Place:
        models = [FoundModel(replace(model, path=str(path))) for model in found]
        monkeypatch.setattr(Result, "models", property(lambda _: models))
        monkeypatch.setattr(run_view, "_ordered", lambda _, models: models)
        print_result(Result(PipelineRun(made, place.folder)), as_json=False)
        return place

    return call


def test_the_lines_to_try_next_can_be_pasted(over: Any, capsys: pytest.CaptureFixture[str]) -> None:
    place = over(FOUND, PLAIN)
    out = capsys.readouterr().out
    lines = [shlex.split(line) for line in out.partition("try next:\n")[2].splitlines()]
    assert lines == [
        ["formwright", "measure", str(place.folder / "models" / "trial-3"), "--length", "16"],
        ["formwright", "show", str(place.folder)],
        ["formwright", "resume", str(place.folder), "--trials", "8"],
    ]
    assert "better" not in out  # nothing is known of how sure the scores are
    assert "0.7500" in out


def test_costs_stand_beside_scores_with_their_length(over: Any, capsys: pytest.CaptureFixture[str]) -> None:
    costs = {"macs": 1_234_567.0, "latency_ms": 4.321}
    over(replace(FOUND, costs=costs), replace(PLAIN, costs=costs | {"latency_ms": 8.765}))
    out = capsys.readouterr().out
    for fact in ("MACs", "ms", "1,234,567", "4.32", "8.77", "16 tokens"):
        assert fact in out


def test_without_a_verdict_no_line_is_empty_for_it(over: Any, capsys: pytest.CaptureFixture[str]) -> None:
    over(FOUND)
    assert "\n\n\nthe page:" not in capsys.readouterr().out


def test_a_study_without_a_model_is_unsuccessful(over: Any, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(Unsuccessful, match="no trial was finished"):
        over()
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("stop", "option"),
    [
        (Stop(seconds=90.5), ["--seconds", "181"]),
        (Stop(steps=500), ["--spend-steps", "1000"]),
        (Stop(patience=5), ["--patience", "10"]),
    ],
)
def test_a_study_goes_on_by_the_limit_that_it_has(stop: Stop, option: list[str], tmp_path: Path) -> None:
    with films_study(tmp_path, stop=stop).open() as opened:
        assert run_view._further(opened) == option


def test_the_line_that_resumes_needs_no_options(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(KeyboardInterrupt), resumable("a b/films"):
        raise Interrupted("the search")
    line = capsys.readouterr().err.splitlines()[-1]
    assert shlex.split(line) == ["formwright", "resume", "a b/films"]


def test_only_a_line_that_extends_a_study_is_noted(
    run: Run, tmp_path: Path, prepared: list[PipelineRun], monkeypatch: pytest.MonkeyPatch
) -> None:
    place = films_study(tmp_path, trials=4)
    for options in ([], ["--trials", "9"]):
        monkeypatch.setattr("sys.argv", ["formwright", "resume", "films", *options])
        assert run("resume", place.folder, *options).code == 0
    assert [begun.command for begun in prepared] == ["", "formwright resume films --trials 9"]


def test_a_password_is_not_printed(tmp_path: Path) -> None:
    place = Place(tmp_path / "absent", "postgresql://me:secret@host/db", "mine")
    assert source_words(place) == ["postgresql://me:***@host/db#mine", "--folder", str(tmp_path / "absent")]


def test_a_second_interruption_also_says_how_to_resume(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(KeyboardInterrupt), resumable(tmp_path):
        raise KeyboardInterrupt
    assert capsys.readouterr().err == "", "nothing began"
    (tmp_path / "run.json").touch()
    with pytest.raises(KeyboardInterrupt), resumable(tmp_path):
        raise KeyboardInterrupt
    assert f"resume {tmp_path}" in capsys.readouterr().err
