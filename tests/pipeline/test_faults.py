"""What goes wrong around a study: killed workers, full disks, locks, damage, newer versions, two users at once."""

import errno
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.pipeline.cases import check_whole, create, films, films_study, start, work
from tests.study.conftest import PostgresServer

from formwright.cli.app import main
from formwright.core.records import Budget, Observation, Request
from formwright.core.rng import derive
from formwright.evaluate.context import Context
from formwright.evaluate.final import openings
from formwright.pipeline import run_folder
from formwright.pipeline.pipeline import VERSION
from formwright.pipeline.run_events import work_here
from formwright.pipeline.study_place import Opened, Place
from formwright.study import dialects
from formwright.study.processes import FAULTY
from formwright.study.store import Store
from formwright.train import checkpoint


def wait_for(condition: Callable[[], Any], seconds: float = 120.0) -> Any:
    """Wait until a condition holds, and give what it found."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.05)
    return found


def ends(process: "subprocess.Popen[str]", seconds: float = 150.0) -> tuple[int, str]:
    """Wait for a process and give its exit code and what it said on standard error."""
    _, said = process.communicate(timeout=seconds)
    return process.returncode, said


def command(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int | str | None, str]:
    """Run the command line in this process; give its exit code and its message of an error."""
    with pytest.raises(SystemExit) as end:
        main([str(argument) for argument in arguments])
    seen = capsys.readouterr()
    assert "Traceback" not in seen.err
    return end.value.code, seen.err.removeprefix("working on films\n")


def extend(opened: Opened, trials: int) -> None:
    """Let a study go on to so many trials, as `resume --trials` does."""
    opened.log.append("started", "test", {"begins": True, "stop": {"trials": trials}})


def outcomes(opened: Opened) -> dict[int | None, str]:
    return {event.number: event.kind for event in opened.log.read() if event.kind in ("told", "failed")}


@pytest.mark.postgres
@pytest.mark.timeout(300)
@pytest.mark.long
def test_two_of_four_workers_are_killed(postgres: PostgresServer, tmp_path: Path) -> None:
    url = postgres.new_url()
    study = films_study(tmp_path, url, trials=12, steps=60)
    team = [start("worker", f"{url}#films", "--folder", study.folder) for _ in range(4)]
    numbers = {worker.pid: worker for worker in team}
    try:
        with study.open() as opened:

            def two_at_work() -> list[int]:
                holders = {int(lease.worker.rsplit("/", 2)[1]) for lease in opened.log.leases().values()}
                return sorted(holders)[:2] if len(holders) > 1 else []

            killed = wait_for(two_at_work)
            for process in killed:
                numbers[process].send_signal(signal.SIGKILL)
            codes = {worker.pid: ends(worker)[0] for worker in team}
            assert codes == {process: -signal.SIGKILL if process in killed else 0 for process in numbers}
            check_whole(opened, 12)
            claims = [event.number for event in opened.log.read() if event.kind == "claimed"]
            assert 12 < len(claims) <= 14  # only what the killed ones had begun was begun again
    finally:
        for worker in team:
            worker.kill()
            worker.communicate()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Give a folder on a disk of 4 MB of its own; where none may be made, a folder whose writes are made to fail."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = os.getuid() == 0 and _mount(folder)
    yield folder
    if mounted:
        subprocess.run(["umount", str(folder)], check=True)


def _mount(folder: Path) -> bool:
    tool = shutil.which("mount")
    options = ["-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)]
    return tool is not None and subprocess.run([tool, *options], check=False, capture_output=True).returncode == 0


@pytest.fixture
def fill(small_disk: Path) -> Callable[[], Callable[[], None]]:
    """Give a function that fills the small disk, and returns the one that frees it again."""

    def call() -> Callable[[], None]:
        if os.path.ismount(small_disk):
            filler = small_disk / "filler"
            with suppress(OSError), filler.open("wb", buffering=0) as file:
                while True:
                    file.write(bytes(4096))
            return filler.unlink
        patch = pytest.MonkeyPatch()
        patch.setattr(checkpoint, "_flush", _no_room)
        return patch.undo

    return call


def _no_room(path: Path, content: bytes) -> None:
    raise OSError(errno.ENOSPC, "No space left on device", str(path))


@pytest.mark.slow
def test_a_disk_is_full_when_a_checkpoint_is_written(
    small_disk: Path, fill: Callable[[], Callable[[], None]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = films(tmp_path, trials=2, evaluator="staged")
    study = create(small_disk / "films", made, str(tmp_path / "log.db"))
    work(study)
    free = fill()
    with study.open() as opened:
        extend(opened, 4)
    assert work_here(study) == FAULTY
    said = capsys.readouterr().err
    assert "No space left on device" in said
    assert "resume the study" in said
    free()
    with study.open() as opened:
        assert outcomes(opened) == {0: "told", 1: "told"}
    work(study)
    with study.open() as opened:
        check_whole(opened, 4)
        for event in opened.log.read():
            if event.kind == "told":  # what was written is there, and whole
                weights = study.folder / event.data["observation"]["artifacts"]["weights"]
                assert weights.stat().st_size > 1000


@pytest.mark.slow
def test_a_disk_is_full_under_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    study = films_study(tmp_path, trials=12, steps=1)
    connect = dialects._connect

    def without_room(path: Path, timeout: float, writable: bool) -> sqlite3.Connection:
        connection = connect(path, timeout, writable)
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages + 2}")  # SQLite itself then says that the disk is full
        return connection

    with monkeypatch.context() as patch:
        patch.setattr(dialects, "_connect", without_room)
        assert work_here(study) == FAULTY
    assert "no space left for" in (said := capfd.readouterr().err)
    assert "Free some, then resume the study." in said
    with study.open() as opened:
        before = opened.log.read()
        assert before
    work(study)
    with study.open() as opened:
        assert opened.log.read()[: len(before)] == before
        check_whole(opened, 12)


@pytest.mark.slow
def test_a_database_is_locked_for_too_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    study = films_study(tmp_path, trials=2)
    opening = Store.open
    lock = sqlite3.connect(study.storage, isolation_level=None)
    with monkeypatch.context() as patch:
        patch.setattr(run_folder.Store, "open", lambda url, **how: opening(url, timeout=0.5, **how))
        lock.execute("BEGIN EXCLUSIVE")
        code, said = command(capsys, "resume", study.folder)
        lock.execute("ROLLBACK")
    lock.close()
    assert code == 2
    assert study.storage in said
    assert "locked by another process" in said
    work(study)
    with study.open() as opened:
        check_whole(opened, 2)


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["cut short", "one bit", "no facts"])
def test_the_last_checkpoint_is_damaged(tmp_path: Path, damage: str) -> None:
    def evaluate(study: Place, *budgets: int) -> Iterator[Observation]:
        with study.open() as opened:
            parts = opened.study()
            card = parts.space.card(parts.space.sample(derive(1, "design")))
            for steps in budgets:
                yield parts.evaluator.evaluate(Request(card, Budget(steps)), Context(0, study.folder))

    (tmp_path / "other").mkdir()
    study = films_study(tmp_path, evaluator="staged")
    list(evaluate(study, 4, 8))
    older, newest = sorted(study.folder.glob("runs/*/step-*"))
    assert (older.name, newest.name) == ("step-000000004", "step-000000008")
    DAMAGES[damage](newest)
    (again,) = evaluate(study, 12)
    (whole,) = evaluate(films_study(tmp_path / "other", evaluator="staged"), 12)
    assert again.spent.steps == 8  # from the older one on
    assert again.metrics == whole.metrics


def _cut(folder: Path) -> None:
    content = (folder / "tensors.safetensors").read_bytes()
    (folder / "tensors.safetensors").write_bytes(content[: len(content) // 2])


def _flip(folder: Path) -> None:
    content = bytearray((folder / "tensors.safetensors").read_bytes())
    content[-7] ^= 1
    (folder / "tensors.safetensors").write_bytes(bytes(content))


def _lose(folder: Path) -> None:
    (folder / "facts.json").unlink()


DAMAGES: dict[str, Callable[[Path], None]] = {"cut short": _cut, "one bit": _flip, "no facts": _lose}


@pytest.mark.parametrize(
    "arguments", [("resume",), ("worker",), ("show",), ("report",), ("export", "--to", "optuna", "x")]
)
def test_a_study_is_of_a_newer_version(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]
) -> None:
    study = films_study(tmp_path)
    name, *others = arguments
    with sqlite3.connect(study.storage) as connection:
        change = (f'"version":{VERSION}', f'"version":{VERSION + 1}')
        connection.execute("UPDATE studies SET config = replace(config, ?, ?)", change)
    facts = json.loads((study.folder / "run.json").read_text())
    facts["pipeline"]["version"] = VERSION + 1
    (study.folder / "run.json").write_text(json.dumps(facts))
    code, said = command(capsys, name, study.folder, *others)
    assert (code, f"version {VERSION + 1}" in said, "update" in said) == (2, True, True)
    with connection:
        connection.execute("UPDATE formwright_version SET version_num = '9999'")
    connection.close()
    (study.folder / "run.json").unlink()
    code, said = command(capsys, name, study.folder, *others)
    assert (code, "revision 9999" in said, "update formwright" in said) == (2, True, True)


@pytest.mark.timeout(300)
@pytest.mark.long
def test_two_users_resume_at_once(tmp_path: Path) -> None:
    study = films_study(tmp_path, trials=8, final_steps=10)
    both = [start("resume", study.folder, "--workers", 1, "--no-baseline") for _ in range(2)]
    try:
        ended = [ends(process) for process in both]
        assert [code for code, _ in ended] == [0, 0], ended
        with study.open() as opened:
            check_whole(opened, 8)
            notes = [event.data for event in opened.log.read() if event.kind == "note"]
            assert sum("model" in note for note in notes) == 1  # who comes second waits, and trains nothing
    finally:
        for process in both:
            process.kill()
            process.communicate()
    (model,) = (study.folder / "models").iterdir()
    assert len(openings(study.folder / "final" / model.name)) == 1
    assert (model / "model.safetensors").is_file()
