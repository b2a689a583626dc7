import shutil
from pathlib import Path

import pytest
from tests.cli.conftest import Run
from tests.cli.studies import digests, facts, scores, search_line
from tests.cli.test_app import formwright_process

from formwright.study.place import find

pytestmark = pytest.mark.timeout(180)


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the folder of a study that came to its end."""
    folder = tmp_path_factory.mktemp("searched")
    facts(*search_line(folder, "--workers", 1, "--searcher", "random"))
    return folder / "study"


@pytest.fixture
def study(searched: Path, tmp_path: Path) -> Path:
    """Give a copy of it, at another place."""
    return Path(shutil.copytree(searched, tmp_path / "copy"))


def events(folder: Path) -> list[tuple[str, int | None]]:
    with find(str(folder)).open() as opened:
        return [(event.kind, event.number) for event in opened.log.read()]


@pytest.mark.slow
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
def test_a_finished_study_can_be_extended(study: Path, searched: Path) -> None:
    extended = facts("resume", study, "--trials", 5, "--workers", 1, "--no-baseline")
    assert [trial["state"] for trial in extended["trials"]] == ["finished"] * 5
    assert extended["config"]["stop"]["trials"] == 5
    before = facts("show", searched)
    assert digests(extended)[:3] == digests(before)
    assert scores(extended)[:3] == scores(before)
    assert [number for kind, number in events(study) if kind == "told"] == [0, 1, 2, 3, 4]


def test_what_is_no_study_is_refused(run: Run, tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "absent"):
        done = run("resume", folder)
        assert (done.code, done.out) == (2, "")
        assert done.err == f"formwright: {folder} is not the folder of a study: it has no config.json\n"


def test_a_database_that_is_not_there_is_refused(run: Run, tmp_path: Path) -> None:
    done = run("resume", f"sqlite:///{tmp_path / 'absent.db'}#films")
    assert (done.code, done.out) == (2, "")
    assert "there is no study at" in done.err
    assert list(tmp_path.iterdir()) == []
