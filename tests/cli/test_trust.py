"""Opening a study runs no code; what goes on with it asks before it runs a file that came with it."""

import io
import os
import shutil
import sqlite3
from pathlib import Path

import optuna
import pytest
from tests.cli.conftest import Run
from tests.cli.test_show_study import order, record
from tests.pipeline.cases import films_study

from formwright.pipeline.designs import is_trusted, own_file, trust
from formwright.pipeline.study_place import Place


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let this test trust what it wants to."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.fixture
def foreign(state: Path, tmp_path: Path) -> Place:
    """Give a study that somebody else has made, and whose space leaves a trace when it runs."""
    place = record(films_study(tmp_path))
    shutil.rmtree(state)
    (tmp_path / "mine.py").write_text(
        "from pathlib import Path\nfrom formwright.testing.toy_problem import small\n\n"
        f"Path({str(tmp_path / 'ran')!r}).touch()\nspace = small()\n"
    )
    return place


def ran(place: Place) -> bool:
    return (place.folder.parent / "ran").exists()


def test_opening_runs_nothing(run: Run, foreign: Place, tmp_path: Path) -> None:
    shown = run("show", foreign.folder)
    assert (shown.code, order(shown.out)) == (0, [4, 1, 3, 0])
    assert run("report", foreign.folder).code == 0
    assert "does not run" in (foreign.folder / "report.html").read_text(encoding="utf-8")
    exported = f"sqlite:///{tmp_path / 'optuna.db'}"
    assert run("export", foreign.folder, "--to", "optuna", "--out", exported).code == 0
    assert [trial.value for trial in optuna.load_study(study_name="films", storage=exported).trials][:2] == [0.5, 0.75]
    assert not ran(foreign)


def test_a_missing_file_is_no_reason_to_show_nothing(run: Run, foreign: Place) -> None:
    (foreign.folder.parent / "mine.py").unlink()
    assert order(run("show", foreign.folder).out) == [4, 1, 3, 0]
    assert run("report", foreign.folder).code == 0
    for command in ("resume", "worker"):
        run(command, foreign.folder).refused("mine.py")


@pytest.mark.parametrize("command", ["resume", "worker"])
def test_going_on_asks_first(run: Run, foreign: Place, command: str) -> None:
    run(command, foreign.folder).refused("--trust-space-file", str(foreign.folder.parent / "mine.py"))
    assert not ran(foreign)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("answer", "runs"), [("n\n", False), ("\n", False), ("y\n", True)])
def test_an_answer_decides(
    run: Run, foreign: Place, answer: str, runs: bool, monkeypatch: pytest.MonkeyPatch, one_process: None
) -> None:
    monkeypatch.setattr("sys.stdin", Terminal(answer))
    monkeypatch.setattr("formwright.pipeline.run_events.work_at", lambda *_: 0)
    assert run("worker", foreign.folder).code == (0 if runs else 2)
    assert is_trusted(foreign.folder.parent / "mine.py") == runs


def test_who_made_a_study_is_not_asked_until_the_file_changes(state: Path, tmp_path: Path) -> None:
    films_study(tmp_path)
    file = tmp_path / "mine.py"
    assert is_trusted(file)
    copy = tmp_path / "elsewhere.py"
    shutil.copy(file, copy)
    assert not is_trusted(copy), "the same program may read other files there"
    file.write_text(file.read_text() + "\n")
    assert not is_trusted(file)
    trust(file)
    assert is_trusted(file)


def test_where_nothing_can_be_remembered_the_user_is_asked_again(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "blocked").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "blocked"))
    (tmp_path / "mine.py").touch()
    trust(tmp_path / "mine.py")
    assert not is_trusted(tmp_path / "mine.py")


@pytest.mark.parametrize(
    ("name", "file"), [("a.py:b", "a.py"), ("flexibert-nano", None), ("a.json", None), ("a.py", None)]
)
def test_files_of_spaces(name: str, file: str | None) -> None:
    assert own_file(name) == (None if file is None else Path(file))


def test_a_file_named_in_the_database_does_not_run(run: Run, foreign: Place, tmp_path: Path) -> None:
    """The attack as it was found: the name of the space is changed in a database that is passed on."""
    (tmp_path / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    with sqlite3.connect(foreign.storage) as connection:
        connection.execute("UPDATE studies SET config = replace(config, 'mine.py', 'evil.py')")
        connection.execute("DELETE FROM leases")
        connection.execute("DROP TRIGGER events_no_delete")
        connection.execute("DELETE FROM events")
    connection.close()
    for command in ("show", "report"):
        assert run(command, foreign.folder).code == 0
    assert run("resume", foreign.folder).code == 2
    assert not ran(foreign)
    assert os.listdir(tmp_path / "films")
