"""The page of a training: its pipeline, the scores and the curve of the loss."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from tests.report.cards import flexibert_mini
from tests.report.test_markup import read

from formwright.pipeline.pipeline import Pipeline
from formwright.pipeline.run import PipelineRun
from formwright.pipeline.run_folder import RunRecord
from formwright.pipeline.train_model import train_pipeline
from formwright.report.page import write_page, write_run_page
from formwright.report.page_training import draw_curve, training_section

CARD = flexibert_mini()
FACTS: dict[str, Any] = {
    "name": "mine <b>", "digest": CARD.digest, "params": 12_345, "card": CARD.to_json(), "task": "mini-glue/sst2",
    "steps": 3, "best_step": 2, "losses": [0.7, 0.6, 0.65], "metrics": {"accuracy": 0.75}, "test": {"accuracy": 0.5},
    "evidence": {}, "conclusion": ["mine is fine"], "beams": 1, "padding": 0.25, "length": 32, "cut": 0.0,
    "recipe": {}, "seconds": 1.5, "model": "somewhere",
}  # fmt: skip


def training_run(folder: Path) -> PipelineRun:
    pipeline = train_pipeline(CARD, "mini-glue/sst2", steps=3)
    return PipelineRun(Pipeline.from_json(pipeline.to_json()), folder)


def page_of(run: PipelineRun) -> str:
    write_run_page(run)
    return (run.out / "report.html").read_text(encoding="utf-8")


def test_a_finished_training_shows_scores_and_curve(tmp_path: Path) -> None:
    run = training_run(tmp_path)
    (tmp_path / "train").mkdir()
    (tmp_path / "train" / "result.json").write_text(json.dumps(FACTS), encoding="utf-8")
    (tmp_path / "train" / "done.json").touch()
    page = page_of(run)
    words = read(page).words
    for expected in ("mine <b>", "mine is fine", "0.7500", "0.5000", "12,345", "1 of 1 stages"):
        assert expected in words
    assert 'class="stage done" data-stage="train"' in page
    assert 'class="curve"' in page
    assert "plotly" not in page


def test_a_training_that_has_not_ended_shows_its_pipeline(tmp_path: Path) -> None:
    RunRecord.of(training_run(tmp_path), {}).write(tmp_path)
    page = write_page(str(tmp_path)).read_text(encoding="utf-8")  # as `formwright report` does, from files alone
    assert 'class="stage open" data-stage="train"' in page
    assert 'class="curve"' not in page


@pytest.mark.parametrize("count", [1, 299, 10_000])
def test_a_curve_has_a_point_for_each_step_or_for_means_of_them(count: int) -> None:
    drawn = draw_curve([1.0 / (step + 1) for step in range(count)], count)
    points = next(part for part in drawn.split("<path") if 'class="curve"' in part).count(",")
    assert points == min(count, 300) or 150 < points <= 300


def test_losses_that_are_no_numbers_are_left_out() -> None:
    assert draw_curve([math.nan, math.inf], 1) == ""
    assert 'class="curve"' in draw_curve([0.5, math.nan, 0.25], 1)
    assert "Training loss" not in training_section({**FACTS, "losses": [math.nan]})
