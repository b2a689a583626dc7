import shutil
from pathlib import Path

import pytest
from tests.cli.conftest import Run
from tests.cli.studies import digests, facts, scores
from tests.cli.test_app import formwright_process
from tests.cli.test_study_view import ask
from tests.pipeline.cases import create, films_study, own_rows, work

from formwright.core.records import Observation
from formwright.pipeline.chosen_designs import candidates
from formwright.pipeline.compare import note_comparisons
from formwright.pipeline.delivery import deliver
from formwright.pipeline.evaluators import UntrainedScores
from formwright.pipeline.run_folder import find
from formwright.pipeline.study_facts import study_json
from formwright.study.stop import Stop

pytestmark = pytest.mark.timeout(180)


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """Give the folder of a study that came to its end, and delivered what it found."""
    place = create(tmp_path / "study", own_rows(tmp_path, stop=Stop(3), evaluator="full", objectives=("accuracy:max",)))
    work(place)
    with place.open() as opened:
        found = opened.study()
        note_comparisons(opened, [deliver(opened, candidate) for candidate in candidates(found, 1)])
    return place.folder


def events(folder: Path) -> list[tuple[str, int | None]]:
    with find(str(folder)).open() as opened:
        return [(event.kind, event.number) for event in opened.log.read()]


@pytest.mark.slow
@pytest.mark.long
def test_a_finished_study_has_nothing_more_to_do(study: Path) -> None:
    before = events(study)
    models = {path: path.stat().st_mtime_ns for path in (study / "models").rglob("*.safetensors")}
    done = formwright_process("resume", str(study), "--workers", "1")
    assert done.returncode == 0, done.stderr
    assert [kind for kind, _ in events(study)[len(before) :]] == ["started", "stopped"]
    assert {path: path.stat().st_mtime_ns for path in (study / "models").rglob("*.safetensors")} == models
    for words in (
        "the best design found",
        "baseline, made by hand",
        "accuracy",
        "the page:",
        "the model:",
        "try next:",
    ):
        assert words in done.stdout
    assert f"formwright resume {study} --trials 6" in done.stdout
    assert f"formwright measure {study / 'models'}" in done.stdout


@pytest.mark.slow
@pytest.mark.long
def test_a_finished_study_can_be_extended(study: Path) -> None:
    with find(str(study)).open() as opened:
        before = study_json(opened)
    extended = facts("resume", study, "--trials", 5, "--workers", 1, "--no-baseline")
    assert [trial["state"] for trial in extended["trials"]] == ["finished"] * 5
    assert extended["config"]["stop"]["trials"] == 5
    assert digests(extended)[:3] == digests(before)
    assert scores(extended)[:3] == scores(before)
    assert [number for kind, number in events(study) if kind == "told"] == [0, 1, 2, 3, 4]


def test_what_is_no_study_is_refused(run: Run, tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "absent"):
        done = run("resume", folder)
        assert (done.code, done.out) == (2, "")
        assert str(folder) in done.err
        assert "run.json" in done.err


def test_a_database_that_is_not_there_is_refused(run: Run, tmp_path: Path) -> None:
    done = run("resume", f"sqlite:///{tmp_path / 'absent.db'}#films")
    assert (done.code, done.out) == (2, "")
    assert "there is no study at" in done.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.long
def test_a_study_that_ended_by_time_goes_on_to_a_number_of_trials(tmp_path: Path) -> None:
    settings = {"evaluator": UntrainedScores(("params",)), "objectives": ("params:max",)}
    place = create(tmp_path / "study", own_rows(tmp_path, stop=Stop(seconds=0.001), **settings))
    work(place)
    line = ("resume", place.folder, "--workers", 1, "--no-baseline")
    extended = facts(*line, "--trials", 3, "--max-failures", 0)
    assert [trial["state"] for trial in extended["trials"]] == ["finished"] * 3
    stop = {"trials": 3, "seconds": None, "steps": None, "patience": None, "tolerance": 0.0, "failures": 0}
    assert extended["config"]["stop"] == stop
    again = facts(*line, "--spend-steps", 100, "--patience", 1)
    assert len(again["trials"]) >= 3
    assert again["config"]["stop"] == stop | {"trials": None, "steps": 100, "patience": 1}


def test_a_study_goes_on_from_a_machine_without_its_folder(run: Run, tmp_path: Path, one_process: None) -> None:
    place = films_study(tmp_path, storage=f"sqlite:///{tmp_path / 'log.db'}", trials=1, steps=2, final_steps=2)
    shutil.rmtree(place.folder)
    new = tmp_path / "other" / "films"
    done = run("resume", f"sqlite:///{tmp_path / 'log.db'}#films", "--folder", new, "--workers", 1, "--no-baseline")
    assert (done.code, (new / "report.html").is_file()) == (0, True), done.err
    assert [path.name for path in (new / "models").iterdir()] == ["trial-0"]


def test_what_only_the_first_folder_has_is_named_before_anything_is_searched(run: Run, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'log.db'}"
    place = films_study(tmp_path, storage=url, evaluator="inherited")
    with place.open() as opened:
        ask(opened, 0)
        kept = Observation({"accuracy": 0.5}, artifacts={"weights": "weights/x.safetensors"})
        opened.log.finish(0, "one", "told", {"observation": kept.to_json()})
    shutil.rmtree(place.folder)
    for command in ("resume", "worker"):
        done = run(command, f"{url}#films", "--folder", tmp_path / "new")
        assert done.code == 2
        assert "weights of its 1 trials" in done.err
        assert "name that folder" in done.err
    assert not (tmp_path / "new").exists()
