"""Searches of formulas do all that other searches do: limits, workers, going on after a kill, delivery and export."""

import os
import signal
from pathlib import Path

import pytest
from tests.cli.studies import digests, facts, started, wait_for
from tests.cli.test_search_recipe import own_task
from tests.cli.training import QUICK

from formwright.arch.graph import has_formulas
from formwright.nn.hf.imported import load_folder
from formwright.nn.task_model import TaskModel

LIMIT = 285_000  # an attention of four inputs in every layer has 292,800 parameters
TRIALS = 5


def line(folder: Path) -> list[str]:
    """Give the arguments of a quick search by the recipe, with two workers."""
    length = ("--trials", TRIALS, "--steps", 3, "--set", "evaluator.steps=2", "--final-steps", 3)
    rest = ("--workers", 2, "--no-baseline", "--limit", f"params<={LIMIT}", "--out", folder / "study")
    return [str(part) for part in ("search", "--recipe", "autobert-zero", *own_task(folder), *QUICK, *length, *rest)]


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_search_with_workers_and_a_limit_that_was_killed_goes_on_and_delivers(tmp_path: Path) -> None:
    with started(line(tmp_path)) as process:
        wait_for(process, tmp_path / "study", lambda event: event.kind == "told")
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    study = facts("resume", tmp_path / "study", "--workers", 2, "--no-baseline")
    assert [trial["state"] for trial in study["trials"]] == ["finished"] * TRIALS
    assert len(set(digests(study))) == TRIALS
    (delivered,) = study["models"]
    model = load_folder(delivered["path"])
    assert isinstance(model, TaskModel)
    assert 0 < delivered["params"] <= LIMIT
    assert has_formulas(model.transformer.card)
    exported = facts("export", delivered["path"], "--to", "onnx", "--out", tmp_path / "onnx")
    assert 0 < exported["largest_difference"] < 1e-3
    page = (tmp_path / "study" / "report.html").read_text(encoding="utf-8")
    assert 'id="formulas"' in page
    assert 'id="operations"' in page
