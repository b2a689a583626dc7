"""A folder whose record or database is damaged or gone: refused in one line, or resumed where all is known."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Run, run  # noqa: F401

import formwright as fw
from formwright.core.errors import IllegalInput
from formwright.pipeline.named_model import read_model
from formwright.pipeline.run_folder import DATABASE, RUN, RunRecord

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
def test_a_record_that_was_edited_is_refused_in_one_line(folder: Path, run: Run, facts: dict[str, Any]) -> None:  # noqa: F811
    edited(folder, lambda found: found.update(facts))
    with pytest.raises(IllegalInput, match=RUN):
        RunRecord.read(folder)
    for command in ("show", "report", "resume", "worker"):
        assert run(command, str(folder)).code == 2


def test_a_search_whose_record_was_removed_is_resumed(folder: Path) -> None:
    (folder / RUN).unlink()  # as the message says where it cannot be read
    assert len(fw.resume(folder, trials=3).trials) == 3
    assert RunRecord.read(folder).pipeline["stages"]["search"]["space"] == "flexibert-nano"


def test_a_run_that_was_killed_before_its_study_began_is_resumed(folder: Path) -> None:
    for path in folder.glob(f"{DATABASE}*"):
        path.unlink()
    (folder / DATABASE).touch()
    assert len(fw.resume(folder).trials) == 2


def test_the_folder_of_a_run_is_no_model(folder: Path) -> None:
    with pytest.raises(IllegalInput, match="folder of a run"):
        read_model(str(folder))


def test_a_search_that_has_not_begun_is_resumed_with_another_limit(folder: Path) -> None:
    for path in folder.glob(f"{DATABASE}*"):
        path.unlink()
    assert len(fw.resume(folder, trials=4).trials) == 4


def test_a_run_without_a_search_takes_no_limit_and_no_worker(folder: Path, run: Run) -> None:  # noqa: F811
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
