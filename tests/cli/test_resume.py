"""Going on with a study: `formwright resume`, and `formwright worker`."""

import os
import shutil
import signal
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Run
from tests.cli.studies import digests, facts, scores, started, wait_for
from tests.cli.test_app import formwright_process
from tests.cli.test_study_view import ask
from tests.pipeline.cases import create, films_study, own_rows, work
from tests.study.cases import kinds

from formwright import api
from formwright.core.errors import IllegalInput
from formwright.core.records import Observation
from formwright.pipeline.chosen_designs import candidates
from formwright.pipeline.compare import note_comparisons
from formwright.pipeline.delivery import deliver
from formwright.pipeline.evaluators import UntrainedScores
from formwright.pipeline.study_facts import study_json
from formwright.pipeline.study_place import find
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
    names = ("the best design found", "baseline, made by hand", "accuracy", "the page:", "the model:", "try next:")
    for words in (*names, f"formwright resume {study} --trials 6", f"formwright measure {study / 'models'}"):
        assert words in done.stdout


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


@pytest.mark.parametrize("command", ["resume", "worker", "report"])
def test_what_is_no_study_is_refused(command: str, run: Run, tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "absent"):
        run(command, folder).refused(folder, "run.json")


def test_a_database_that_is_not_there_is_refused(run: Run, tmp_path: Path) -> None:
    run("resume", f"sqlite:///{tmp_path / 'absent.db'}#films").refused("there is no study at")
    assert list(tmp_path.iterdir()) == []


def test_every_option_reaches_the_run(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, Any] = {}

    def resume(source: str, **options: Any) -> None:
        seen.update(options, source=source)
        raise IllegalInput("enough")

    monkeypatch.setattr(api, "resume", resume)
    line = "--trials 3 --seconds 4.5 --spend-steps 5 --patience 6 --max-failures 7 --workers 8 --ray here --ray-cpus 2"
    more = "--ray-gpus 0.5 --device cpu --no-baseline --folder weights --trust-space-file --observe mlflow"
    assert run("resume", "study", *line.split(), *more.split()).code == 2
    numbers = {"trials": 3, "seconds": 4.5, "steps": 5, "patience": 6, "failures": 7, "workers": 8, "ray_cpus": 2.0}
    words = {"source": "study", "ray": "here", "ray_gpus": 0.5, "device": "cpu", "baseline": False}
    wanted = {**numbers, **words, "folder": Path("weights"), "observers": ["mlflow"]}
    assert {name: seen[name] for name in wanted} == wanted
    assert seen["confirm"].keywords == {"trusted": True}


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
        run(command, f"{url}#films", "--folder", tmp_path / "new").refused(
            "weights of its 1 trials", "name that folder"
        )
    assert not (tmp_path / "new").exists()


def test_a_worker_joins_a_study(run: Run, tmp_path: Path) -> None:
    place = create(tmp_path / "films", own_rows(tmp_path, stop=Stop(3)))
    done = run("worker", place.folder)
    assert (done.code, done.out, done.err) == (0, "films is finished\n", "working on films\n")
    with place.open() as opened:
        assert [event.number for event in kinds(opened.log, "told")] == [0, 1, 2]


def test_a_worker_finds_a_study_by_its_url(run: Run, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'all.db'}"
    create(tmp_path / "films", own_rows(tmp_path, stop=Stop(1)), url)
    done = run("worker", f"{url}#films", "--folder", tmp_path / "weights")
    assert (done.code, done.out) == (0, "films is finished\n")


def test_a_study_that_nobody_can_work_on(run: Run, tmp_path: Path) -> None:
    place = create(tmp_path / "films", own_rows(tmp_path, searcher="random"))
    with closing(sqlite3.connect(place.storage)) as database:  # as written where another package brings a searcher
        database.execute("""UPDATE studies SET config = replace(config, '"random"', '"absent"')""")
        database.commit()
    run("worker", place.folder).refused("no searcher called 'absent'")


@pytest.mark.long
@pytest.mark.slow
def test_a_worker_that_leaves_gives_its_trial_back(tmp_path: Path) -> None:
    place = create(tmp_path / "films", own_rows(tmp_path, stop=Stop(5000)))
    with started(["worker", str(place.folder)]) as process:
        wait_for(process, place.folder, lambda event: event.kind == "told")
        os.kill(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (130, "", "working on films\n")
    with place.open() as opened:
        assert all(lease.expires <= opened.log.now() for lease in opened.log.leases().values())
