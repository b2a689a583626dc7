"""What is said when a study is over."""

import json
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Run
from tests.study.films import films_study

from formwright.cli import study_run
from formwright.cli.study_run import Wishes, conduct
from formwright.core.errors import Unsuccessful
from formwright.core.rng import derive
from formwright.nn.hf.folders import CARD
from formwright.study.delivered import Delivered
from formwright.study.place import Place
from formwright.study.run_record import RunOptions, last_options
from formwright.study.stop import Stop
from formwright.testing.spaces import small

FOUND = Delivered("trial-3", "best", "a", "x", 900, 60, {"accuracy": 0.75, "loss": 0.5}, None, 3)
PLAIN = Delivered("baseline", "baseline", "b", "y", 1000, 60, {"accuracy": 0.5, "loss": 0.75}, None, None)


@pytest.fixture
def over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Give a function that conducts a study whose work is done already, and came to these models."""
    (tmp_path / "a b").mkdir()
    place = films_study(tmp_path / "a b", trials=4)
    path = place.folder / "models" / "trial-3"
    path.mkdir(parents=True)
    space = small()
    (path / CARD).write_text(json.dumps(space.card(space.sample(derive(0))).to_json()))
    monkeypatch.setattr("sys.argv", ["formwright"])

    def call(*found: Delivered) -> Place:
        monkeypatch.setattr(study_run, "_work", lambda *_: [replace(model, path=str(path)) for model in found])
        conduct(place, Wishes())
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
    with films_study(tmp_path).open() as opened:
        extended = replace(opened, config=replace(opened.config, stop=stop))
        assert study_run._further(extended) == option


def test_the_line_that_resumes_needs_no_options(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    place, run = films_study(tmp_path), RunOptions(3, "auto", ray_gpus=0.5, baseline=False)
    monkeypatch.setattr(study_run, "_work", stopped)
    with pytest.raises(KeyboardInterrupt):
        conduct(place, Wishes(run))
    line = capsys.readouterr().err.splitlines()[-1]
    assert shlex.split(line) == ["formwright", "resume", str(place.folder)]
    with place.open() as opened:
        assert last_options(opened.log) == run


def test_only_a_line_that_extends_a_study_is_noted(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place, noted = films_study(tmp_path, trials=4), []
    monkeypatch.setattr(study_run, "conduct", lambda _, wishes: noted.append(wishes.command))
    for options in ([], ["--trials", "9"]):
        monkeypatch.setattr("sys.argv", ["formwright", "resume", "films", *options])
        assert run("resume", place.folder, *options).code == 0
    assert noted == ["", "formwright resume films --trials 9"]


def test_a_password_is_not_printed(tmp_path: Path) -> None:
    place = Place(tmp_path / "absent", "postgresql://me:secret@host/db", "mine")
    assert study_run._source(place) == ["postgresql://me:***@host/db#mine", "--folder", str(tmp_path / "absent")]
