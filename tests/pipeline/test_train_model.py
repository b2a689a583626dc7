"""The stage that trains one model: exact after any interruption, judged again without training, one with its JSON."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.cli.training import ENCODER, card_file, table
from tests.pipeline.compressions import Told

from formwright.core.errors import IllegalDesign, IllegalInput, UnknownName
from formwright.evaluate.final import openings
from formwright.pipeline.model_training import Distillation, Judging, ModelTraining, WordPretraining
from formwright.pipeline.pipeline import Pipeline
from formwright.pipeline.run import Interrupted, PipelineRun, RunOptions
from formwright.pipeline.run_folder import RUN, RunRecord
from formwright.pipeline.runner import prepare, run_pipeline
from formwright.pipeline.train_model import TrainModel, train_pipeline
from formwright.testing.stage_contract import Killed

STEPS, PRETRAINING = 8, 3
DETAILS = {"text": ("words",), "label": "b", "steps": STEPS, "batch": 8, "length": 16, "judge_every": 2}


def composed(folder: Path, **options: Any) -> Pipeline:
    mine = folder / "mine.csv"
    source = str(card_file(folder))
    return train_pipeline(source, str(mine if mine.exists() else table(folder)), **DETAILS | options)


def trained(
    folder: Path, out: str = "out", *, stop_at: int | None = None, every: int = 2, **options: Any
) -> tuple[dict[str, Any], Told]:
    display = Told(stop_at)
    display.run = PipelineRun(composed(folder, **options), folder / out, RunOptions(save_every=every), display)
    run = run_pipeline(display.run)
    return run.artifact(run.pipeline.stages[-1]).facts, display


def learned(facts: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in facts.items() if name not in ("seconds", "model")}


@pytest.mark.parametrize("stop_at", [1, PRETRAINING, PRETRAINING + 1, PRETRAINING + STEPS - 1])
def test_a_stopped_training_is_saved_and_goes_on_to_the_same_end(stop_at: int, tmp_path: Path) -> None:
    pretraining = WordPretraining(steps=PRETRAINING)
    whole, display = trained(tmp_path, "whole", pretraining=pretraining)
    assert len(display.all_steps) == PRETRAINING + STEPS
    saved = tmp_path / "out" / "checkpoints" / "train"
    with pytest.raises(Interrupted, match=r"step|pretraining"):
        trained(tmp_path, stop_at=stop_at, every=0, pretraining=pretraining)
    assert [path.name for path in saved.rglob("step-*")]  # also where nothing is saved in between
    assert not (tmp_path / "out" / "model").exists()
    again, display = trained(tmp_path, pretraining=pretraining)
    assert learned(again) == learned(whole)
    assert len(display.all_steps) == PRETRAINING + STEPS - stop_at
    assert not saved.exists()


def test_what_is_trained_is_not_trained_again_where_its_model_is_gone_or_moved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert trained(tmp_path, stop_at=STEPS)[0]["steps"] == STEPS  # a request at the last step comes too late
    shutil.rmtree(tmp_path / "out" / "model")
    assert trained(tmp_path)[1].all_steps == []
    assert (tmp_path / "out" / "model" / "config.json").is_file()
    first, _ = trained(tmp_path)
    (tmp_path / "out").rename(tmp_path / "moved")
    monkeypatch.chdir(tmp_path)
    display = Told()
    display.run = PipelineRun(composed(Path()), Path("moved"), display=display)
    run_pipeline(display.run)
    facts = display.run.artifact(display.run.pipeline.stages[0]).facts
    assert facts == first | {"model": "moved/model"}
    assert len(display.all_steps) == 0


def test_a_finished_training_is_tested_later_without_training(tmp_path: Path) -> None:
    first, _ = trained(tmp_path)
    second, display = trained(tmp_path, test=True)
    assert len(display.all_steps) == 0
    assert first["test"] is None
    assert second["test"] is not None
    assert (second["losses"], second["metrics"]) == (first["losses"], first["metrics"])
    assert "test accuracy" in (tmp_path / "out" / "model" / "README.md").read_text(encoding="utf-8")
    third, display = trained(tmp_path)
    assert (third["test"], display.all_steps) == (second["test"], [])  # what is known stays known
    assert len(openings(tmp_path / "out" / "final")) == 1


@pytest.mark.parametrize("left", ["weights", "no weights"])
def test_a_kill_while_a_finished_training_is_tested_costs_no_training(
    left: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained(tmp_path)

    def killed(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr("formwright.pipeline.task_models.write_task_model", killed)
        with pytest.raises(Killed):
            trained(tmp_path, test=True)
    if left == "no weights":
        (tmp_path / "out" / "train" / "weights.safetensors").write_bytes(b"")
    facts, display = trained(tmp_path, test=True)
    assert facts["test"] is not None
    assert len(display.all_steps) == (0 if left == "weights" else STEPS)


def test_the_record_of_a_run_is_the_pipeline_with_everything_settled(tmp_path: Path) -> None:
    facts, _ = trained(tmp_path, steps=None, epochs=1.0, length=None)
    record = RunRecord.read(tmp_path / "out")
    again = Pipeline.from_json(record.pipeline)
    (stage,) = again.of_kind(TrainModel)
    assert (stage.training.steps, stage.training.epochs, facts["steps"]) == (10, None, 10)
    assert (stage.training.length, stage.training.learning_rate, stage.training.dropout) == (16, 1e-3, 0.0)
    run = PipelineRun(again, tmp_path / "out")
    assert prepare(run).pipeline == record.pipeline == json.loads((tmp_path / "out" / RUN).read_text())["pipeline"]


def test_options_find_their_group_and_a_card_is_a_source(tmp_path: Path) -> None:
    teacher = Distillation("teacher", labels=0.25)
    (stage,) = train_pipeline(
        ENCODER, "reviews.csv", text=("a",), rows=9, steps=3, patience=2, distillation=teacher, seed=4
    ).of_kind(TrainModel)
    assert (stage.task.name, stage.task.text, stage.task.rows) == ("reviews.csv", ("a",), 9)
    assert (stage.training, stage.judging) == (ModelTraining(steps=3), Judging(patience=2))
    assert (stage.distillation, stage.seed) == (teacher, 4)
    assert Pipeline.from_json(json.loads(json.dumps(Pipeline(stage).to_json()))).stages == (stage,)
    with pytest.raises(UnknownName, match="patience"):
        train_pipeline("bert-tiny", "digits", patiense=3)
    assert trained(tmp_path)[0]["digest"] == ENCODER.digest
    run = run_pipeline(PipelineRun(train_pipeline(ENCODER, str(tmp_path / "mine.csv"), **DETAILS), tmp_path / "card"))
    assert run.artifact(run.pipeline.stages[0]).facts["name"] == f"card-{ENCODER.digest[:8]}"


@pytest.mark.parametrize(
    "build",
    [
        lambda: ModelTraining(steps=1, epochs=1),
        lambda: ModelTraining(epochs=float("nan")),
        lambda: Judging(judge_every=0, patience=1),
    ],
)
def test_options_that_cannot_be_are_refused(build: Callable[[], object]) -> None:
    with pytest.raises(IllegalInput):
        build()


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("training.batch", 0),
        ("training.accumulate", 0),
        ("training.threads", 1025),
        ("judging.judge_every", -1),
        ("judging.patience", 0),
        ("judging.beams", 0),
        ("distillation.labels", 1.5),
        ("distillation.hidden", float("inf")),
        ("pretraining.steps", 0),
    ],
)
def test_numbers_out_of_range_are_refused_by_name(option: str, value: float, tmp_path: Path) -> None:
    made = composed(tmp_path, distillation=Distillation("teacher"), pretraining=WordPretraining())
    with pytest.raises(IllegalDesign, match=f"train.{option}"):
        made.with_options([(["train", *option.split(".")], value)])
