"""What is said when a run of a search is over."""

import json
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Run
from tests.cli.studies import search_line
from tests.cli.training import QUICK, card_file
from tests.pipeline.cases import create, films, films_study

from formwright.cli import run_view
from formwright.cli.run_view import print_result, resumable, source_words
from formwright.cli.show_run import is_run
from formwright.core.errors import EvaluationFailed, Unsuccessful
from formwright.core.rng import derive
from formwright.evaluate.training import Trainer
from formwright.nn.hf.model_folder import CARD
from formwright.pipeline.delivered import Delivered
from formwright.pipeline.run import Interrupted, PipelineRun
from formwright.pipeline.run_folder import RUN
from formwright.pipeline.study_place import Place
from formwright.result import FoundModel, Result
from formwright.study.stop import Stop
from formwright.testing.toy_problem import small

pytestmark = pytest.mark.usefixtures("one_process")
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
        print_result(Result(PipelineRun(made, place.folder)), as_json=False)
        return place

    return call


def test_the_lines_to_try_next_can_be_pasted(over: Any, capsys: pytest.CaptureFixture[str]) -> None:
    place = over(FOUND, PLAIN)
    out = capsys.readouterr().out
    lines = [shlex.split(line) for line in out.partition("try next:\n")[2].splitlines()]
    assert lines == [
        ["formwright", "measure", str(place.folder / "models" / "trial-3")],
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


def test_only_extensions_are_noted(
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


@pytest.mark.parametrize(("folder", "typed"), [("hat", "./hat"), ("mine", "mine"), ("bert-tiny", "./bert-tiny")])
def test_a_folder_that_is_called_like_a_published_name_is_typed_as_a_path(
    folder: str, typed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / folder).mkdir()
    (tmp_path / folder / RUN).touch()
    assert source_words(Place(Path(folder), f"sqlite:///{folder}/study.db", folder)) == [typed]
    assert is_run(typed)


def test_a_second_interruption_also_says_how_to_resume(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(KeyboardInterrupt), resumable(tmp_path):
        raise KeyboardInterrupt
    assert capsys.readouterr().err == "", "nothing began"
    (tmp_path / "run.json").touch()
    with pytest.raises(KeyboardInterrupt), resumable(tmp_path):
        raise KeyboardInterrupt
    assert f"resume {tmp_path}" in capsys.readouterr().err


@pytest.fixture
def diverging(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every training fail: two of three at another step, and one for another reason."""
    number = iter(range(10**6))

    def evaluate(*_: Any) -> None:
        turn = next(number)
        raise EvaluationFailed("out of luck" if turn == 1 else f"the loss is nan at step {turn}; lower the rate (0.5)")

    monkeypatch.setattr(Trainer, "evaluate", evaluate)


@pytest.mark.slow
@pytest.mark.usefixtures("diverging")
def test_where_all_trials_fail_the_reasons_are_counted(run: Run, tmp_path: Path) -> None:
    done = run(*search_line(tmp_path, "--workers", 1))
    assert (done.code, done.out) == (1, "")
    for fact in ("all 3 trials failed", "2 times: the loss is nan at step 0", "out of luck", "report.html", "show"):
        assert fact in done.err, fact
    again = run("resume", tmp_path / "study", "--json")
    assert again.code == 1
    assert again.data["models"] == []
    number, reason = again.data["no_model"]["failures"][0]
    assert number == 2
    assert reason.startswith("the loss is nan at step 0; lower the rate (0.5)")


@pytest.mark.slow
def test_where_no_design_keeps_all_limits_the_nearest_is_told(run: Run, tmp_path: Path) -> None:
    done = run(*search_line(tmp_path, "--limit", "accuracy>=0.999", "--json"))
    assert done.code == 1
    reason = done.data["no_model"]
    best = max(trial["metrics"]["accuracy"] for trial in done.data["trials"])
    assert "3 designs" in reason["why"]
    assert f"the nearest has {best:.4g}" in reason["advice"][0]
    assert "accuracy>=0.999" in done.err
    assert "formwright resume" in done.err


_SHARE = 0.7  # of the majority class


def noise(folder: Path, rows: int = 300) -> Path:
    """Write rows whose labels nothing in the text tells."""
    rng = derive(0, "noise")
    lines = ["words,verdict"]
    for number in range(rows):
        letters = " ".join("abcdefgh"[index] for index in rng.integers(8, size=6))
        lines.append(f"{number} {letters},{'common' if rng.random() < _SHARE else 'rare'}")
    path = folder / "noise.csv"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def test_train_says_that_a_model_is_no_better_than_the_majority_class(run: Run, tmp_path: Path) -> None:
    words = ("train", card_file(tmp_path), "--task", noise(tmp_path), "--text", "words", "--label", "verdict")
    words = (*words, *QUICK, "--steps", 20, "--test", "--out", tmp_path / "out")
    found = run(*words, "--json").data
    for split in ("validation", "test"):
        evidence = found["evidence"][split]
        assert "'common'" in evidence["majority"]["answer"]
        low, high = evidence["intervals"]["accuracy"]
        assert low <= (found["test"] if split == "test" else found["metrics"])["accuracy"] <= high
    guess = found["evidence"]["test"]["majority"]
    assert guess["differences"]["accuracy"]["outcome"] != "better"
    assert "guessing" in found["conclusion"][0]
    text = run(*words).out
    assert found["conclusion"][0] in text
    card = (tmp_path / "out" / "model" / "README.md").read_text(encoding="utf-8")
    for told in (text, card):
        assert f"{guess['scores']['accuracy']:.4f}" in told
        assert "'common'" in told


@pytest.mark.long
@pytest.mark.slow
def test_search_claims_no_win_where_nothing_can_be_learnt(run: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("from formwright.testing.toy_problem import small\n\nspace = small()\n")
    own = ("--task", noise(tmp_path), "--text", "words", "--label", "verdict", "--out", tmp_path / "study")
    few = ("--trials", 2, "--steps", 8, "--final-steps", 12, "--batch", 8, "--length", 16, "--workers", 1)
    found = run("search", f"{tmp_path / 'mine.py'}:space", *own, *few, "--json").data
    best = found["models"][0]
    guess = best["evidence"]["test"]["majority"]
    assert guess["scores"]["accuracy"] > 0.5
    assert "guessing" in found["conclusion"][0]
    assert not any(" is better " in line for line in found["conclusion"])
    assert found["comparisons"][0]["other"] == "baseline"
    shown = f"{guess['scores']['accuracy']:.4f}"
    assert shown in Path(found["report"]).read_text(encoding="utf-8")
    card = (Path(best["path"]) / "README.md").read_text(encoding="utf-8")
    assert shown in card
    assert "baseline" in card
    assert " is better " not in card
    text = run("resume", tmp_path / "study", "--trials", 2).out
    assert "guessing" in next(line for line in text.splitlines() if line)
    assert shown in text
