"""Names that lead elsewhere, folders that cannot be written, and records or databases that are damaged or gone."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Run
from tests.cli.test_show_study import record
from tests.pipeline.cases import films, films_study

import formwright as fw
from formwright.core.errors import IllegalInput
from formwright.pipeline.delivered import delivered
from formwright.pipeline.named_model import read_model
from formwright.pipeline.run_folder import DATABASE, RUN, RunRecord
from formwright.pipeline.study_place import Place, find
from formwright.study.database import StoreError
from formwright.study.store import Store


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """Give a folder that other users can read, unlike those of pytest."""
    folder = Path(tempfile.mkdtemp(prefix="formwright-test-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Let nobody write to a folder and what is in it; root, who may, becomes nobody meanwhile."""
    inside = [folder, *folder.rglob("*")]
    for path in inside:
        path.chmod(0o555 if path.is_dir() else 0o444)
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)
        for path in inside:
            path.chmod(0o755)


def renamed(place: Place, name: str) -> None:
    """Call a study in its database what the program would not."""
    with sqlite3.connect(place.storage) as connection:
        connection.execute("UPDATE studies SET name = ?", [name])
    connection.close()


def test_a_name_in_a_database_of_others_writes_nothing_elsewhere(run: Run, tmp_path: Path, monkeypatch) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "OUTSIDE" / "dir"
    inside.mkdir()
    outside.mkdir(parents=True)
    (outside / "report.html").write_text("mine")
    place = films_study(tmp_path)
    renamed(place, "../OUTSIDE/dir")
    monkeypatch.chdir(inside)
    for source in (f"sqlite:///{place.storage}", f"sqlite:///{place.storage}#../OUTSIDE/dir"):
        for command in ("report", "show", "resume", "worker"):
            done = run(command, source)
            assert done.code == 2
            assert "'../OUTSIDE/dir'" in done.err
    assert (outside / "report.html").read_text() == "mine"
    assert list(inside.iterdir()) == []


def test_a_name_in_the_record_of_a_run(tmp_path: Path) -> None:
    place = films_study(tmp_path)
    facts = json.loads((place.folder / RUN).read_text())
    (place.folder / RUN).write_text(json.dumps(facts | {"name": "../films"}))
    with pytest.raises(IllegalInput, match=r"'\.\./films'"):
        find(str(place.folder))


def test_names_of_targets_and_models(tmp_path: Path) -> None:
    with pytest.raises(IllegalInput, match=r"'\.\./x'"):
        films(tmp_path, targets={"../x": "params<=1"})
    with films_study(tmp_path).open() as opened:
        opened.log.append("note", "me", {"model": {"name": "../../x", "role": "best"}})
        with pytest.raises(IllegalInput, match=r"'../../x'"):
            delivered(opened)


@pytest.mark.parametrize("killed", [False, True])
def test_a_study_on_read_only_storage_is_shown(run: Run, open_folder: Path, tmp_path: Path, killed: bool) -> None:
    place = record(films_study(open_folder))
    for command in ("show", "report"):  # which imports what nobody may read in the home of root
        assert run(command, place.folder).code == 0
    if killed:  # what a killed process leaves: the newest events are in a file of their own
        with Store.open(place.storage) as store:
            store.study(place.name).append("note", "me", {"last": True})
            copies = {end: Path(f"{place.storage}{end}").read_bytes() for end in ("", "-wal")}
        for end, content in copies.items():
            Path(f"{place.storage}{end}").write_bytes(content)
        assert not Path(f"{place.storage}-shm").exists()
    out = open_folder / "out"
    out.mkdir()
    with read_only(place.folder):
        shown = run("show", place.folder, "--json")
        assert shown.data["best"] == [4]
        refused = run("report", place.folder)
        assert (refused.code, "--out" in refused.err) == (2, True)
        with find(str(place.folder)).open() as opened:
            assert ("last" in opened.log.read()[-1].data) == killed
            with pytest.raises(StoreError):
                opened.log.append("note", "me")
    written = run("report", place.folder, "--out", out / "page.html")
    assert (written.code, (out / "page.html").is_file()) == (0, True)


def test_pipes_and_deep_nesting_in_place_of_a_configuration_are_refused(run: Run, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / RUN)
    os.mkfifo(tmp_path / "config.json")
    for command in ("show", "report", "resume", "measure"):
        assert run(command, tmp_path).code == 2
    for name, commands in ((RUN, ("show", "report", "resume")), ("config.json", ("measure",))):
        folder = tmp_path / name.partition(".")[0]
        folder.mkdir()
        (folder / name).write_text("[" * 200_000 + "]" * 200_000)
        for command in commands:
            done = run(command, folder)
            assert (done.code, name in done.err) == (2, True)


PROXY = "{stage: search, space: flexibert-nano, evaluator: {name: proxy, proxies: [params]}, stop: {trials: 2}}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Give the folder of a search that is over in a moment and needs no object of Python."""
    file = tmp_path / "quick.yaml"
    file.write_text(f"stages:\n  search: {PROXY}\n", encoding="utf-8")
    fw.run(file, tmp_path / "run", workers=1)
    return tmp_path / "run"


def edited(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    facts = json.loads((folder / RUN).read_text())
    change(facts)
    (folder / RUN).write_text(json.dumps(facts))


@pytest.mark.parametrize(
    "facts",
    [
        {"pipeline": {}},
        {"pipeline": {"stages": {"search": 5}}},
        {"fixed": {"search": 5}},
        {"contents": {"search": 5}},
        {"storage": 5},
        {"name": 5},
        {"command": 5},
    ],
)
def test_a_record_that_was_edited_is_refused_in_one_line(folder: Path, run: Run, facts: dict[str, Any]) -> None:
    edited(folder, lambda found: found.update(facts))
    with pytest.raises(IllegalInput, match=RUN):
        RunRecord.read(folder)
    for command in ("show", "report", "resume", "worker"):
        assert run(command, str(folder)).code == 2


def test_a_run_whose_study_has_not_begun_is_resumed(folder: Path) -> None:
    for path in folder.glob(f"{DATABASE}*"):
        path.unlink()
    (folder / DATABASE).touch()
    assert len(fw.resume(folder).trials) == 2
    for path in folder.glob(f"{DATABASE}*"):
        path.unlink()
    assert len(fw.resume(folder, trials=4).trials) == 4


def test_a_search_whose_record_was_removed_is_resumed_and_is_no_model(folder: Path) -> None:
    with pytest.raises(IllegalInput, match="folder of a run"):
        read_model(str(folder))
    (folder / RUN).unlink()  # as the message says where it cannot be read
    assert len(fw.resume(folder, trials=3).trials) == 3
    assert RunRecord.read(folder).pipeline["stages"]["search"]["space"] == "flexibert-nano"


def test_a_run_without_a_search_takes_no_limit_and_no_worker(folder: Path, run: Run) -> None:
    stages = {"train": {"stage": "train", "source": "bert-tiny", "task": {"name": "digits"}}}
    edited(folder, lambda found: found["pipeline"].update(stages=stages))
    (folder / DATABASE).unlink()
    with pytest.raises(IllegalInput, match="trials"):
        fw.resume(folder, trials=4)
    done = run("worker", str(folder))
    assert (done.code, "no study" in done.err) == (2, True)


def test_a_name_that_no_file_may_have_is_refused() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "formwright.cli.app", "resume", "x" * 300], check=False, capture_output=True, text=True
    )
    assert (done.returncode, "too long" in done.stderr, "Traceback" in done.stderr) == (2, True, False)
