"""The stages that fine-tune a teacher and score its parts: done once, resumed, refused where nothing was learned."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.cli.letters import LETTERS, SEVERAL
from tests.cli.letters import table as letters
from tests.pipeline.compressions import BERT, LENGTH, QUICK, STEPS, Told, begun, bert, compression, made, squad

from formwright.arch.heads import HeadSpec
from formwright.core.errors import FormwrightError, IllegalInput
from formwright.nn.task_model import TaskModel
from formwright.pipeline import pacing, task_models
from formwright.pipeline.fine_tune import FineTune, WeakTeacher
from formwright.pipeline.pacing import budget_of
from formwright.pipeline.pipeline import Pipeline
from formwright.pipeline.plan import within
from formwright.pipeline.run import Interrupted, PipelineRun
from formwright.pipeline.score_parts import Order, read_importance, write_importance
from formwright.pipeline.task_choice import TaskChoice
from formwright.supernet.importance import Importance, magnitude, uniform
from formwright.train.checkpoint import weights_digest

FINE = f"fine-tuning {STEPS}"


def digest(model: TaskModel) -> str:
    return weights_digest(model.state_dict())


def alone(pipeline: Pipeline) -> Pipeline:
    """Give the pipeline that fine-tunes the teacher, and nothing else."""
    return Pipeline(pipeline.named["teacher"])


@pytest.mark.slow
@pytest.mark.parametrize("at", [0, 1, 3])
def test_a_teacher_that_was_stopped_is_the_same_in_the_end(at: int, tmp_path: Path) -> None:
    pipeline = alone(compression(tmp_path))
    wanted = made(begun(pipeline, tmp_path / "whole"), "teacher").model
    stops = Told(at + 1)
    run = stops.run = begun(pipeline, tmp_path / "cut", stops)
    with pytest.raises(Interrupted):
        made(run, "teacher")
    assert not (tmp_path / "cut" / "teacher").exists()
    told = Told()
    again = begun(pipeline, tmp_path / "cut", told)
    assert digest(made(again, "teacher").model) == digest(wanted)
    assert told.steps[FINE] == list(range(at + 1, STEPS))
    assert not (tmp_path / "cut" / "checkpoints" / "teacher").exists()


@pytest.mark.slow
def test_a_teacher_that_was_killed_before_it_was_written_is_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline = alone(compression(tmp_path))
    wanted = made(begun(pipeline, tmp_path / "whole"), "teacher").model

    def full(*_: object) -> None:
        raise IllegalInput("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(task_models, "save_task_model", full)
        with pytest.raises(IllegalInput, match="full"):
            made(begun(pipeline, tmp_path / "cut"), "teacher")
    told = Told()
    assert digest(made(begun(pipeline, tmp_path / "cut", told), "teacher").model) == digest(wanted)
    assert told.steps[FINE] == []  # the checkpoint of its end was there


@pytest.mark.slow
@pytest.mark.parametrize("order", ["first-order", "movement"])
def test_a_model_that_answers_the_task_stays_its_own_teacher(order: Order, tmp_path: Path) -> None:
    folder = bert(tmp_path, "known", HeadSpec("sequence-classification", 2), labels=("no", "yes"))
    told = Told()
    run = begun(compression(tmp_path, model=folder, order=order), tmp_path / "out", told)
    stage = run.pipeline.of_kind(FineTune)[0]
    here = run.stage(stage)
    moves = order == "movement"
    assert stage.is_trained(here) == moves
    assert stage.amounts(here)["steps"].usual == (STEPS if moves else 0)
    assert "already" in stage.describe({"steps": 0}, here)
    assert stage.pretrained(here).is_finetuned
    scores = made(run, "scores")
    assert digest(run.artifact(stage).model) == weights_digest(stage.pretrained(here).imported.weights)
    assert len(told.steps.get(FINE, [])) == (STEPS if moves else 0)  # only to see where its weights move
    assert any(one.any() for one in scores.space.scores)


@pytest.mark.slow
@pytest.mark.parametrize(("order", "known"), [("first-order", False), ("movement", True)])
def test_several_labels_are_learned_and_scored(order: Order, known: bool, tmp_path: Path) -> None:
    task = TaskChoice(str(letters(tmp_path)), text=("words",), label="letters", kind="multi-label")
    model = bert(tmp_path, "known", SEVERAL, labels=LETTERS) if known else bert(tmp_path)
    run = begun(compression(tmp_path, model=model, task=task, order=order), tmp_path / "out")
    assert any(one.any() for one in made(run, "scores").space.scores)
    teacher = run.artifact(run.pipeline.named["teacher"])
    assert teacher.model.spec == SEVERAL
    assert teacher.stage.pretrained(teacher.run).is_finetuned == known


def started(tmp_path: Path, **options: Any) -> tuple[FineTune, Any]:
    run = begun(compression(tmp_path, **options), tmp_path / "out")
    stage = run.pipeline.of_kind(FineTune)[0]
    return stage, run.stage(stage)


def test_a_hastened_teacher_with_few_steps_has_a_higher_rate(tmp_path: Path) -> None:
    stage, run = started(tmp_path, teacher__epochs=4.0)
    hastened = replace(stage, hastened=True)
    assert stage.rate(1, run) == hastened.rate(4 * STEPS, run) == hastened.rate(9 * STEPS, run) == 1e-3
    assert hastened.rate(STEPS, run) == pytest.approx(2e-3)
    assert hastened.rate(1, run) < 4.01e-3


@pytest.mark.slow
def test_a_hastened_teacher_is_trained_at_its_higher_rate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rates: list[float] = []

    def watched(run: Any, what: str, *given: Any) -> None:
        rates.append(given[-2](STEPS).learning_rate)
        train(run, what, *given)

    train = pacing.train_paced
    monkeypatch.setattr(pacing, "train_paced", watched)
    stage, run = started(tmp_path, teacher__epochs=4.0, teacher__hastened=True)
    stage._trained(run)
    assert rates == [stage.rate(STEPS, run)]
    assert rates[0] == pytest.approx(2e-3)


def test_rows_are_as_long_as_the_model_reads_whatever_the_user_says(tmp_path: Path) -> None:
    run = begun(compression(tmp_path, training=replace(QUICK, length=1000)), tmp_path / "out")
    lengths = {name: getattr(stage, "training", None) for name, stage in run.pipeline.named.items()}
    assert {name: one.length for name, one in lengths.items() if one is not None} == dict.fromkeys(
        ("teacher", "super-network", "search"), 32
    )
    assert run.pipeline.named["space"].length == 32  # type: ignore[attr-defined]


def test_a_run_keeps_the_device_and_the_threads_that_it_began_with(tmp_path: Path) -> None:
    from formwright.pipeline.run_folder import claim_folder
    from formwright.pipeline.runner import prepare

    pipeline = compression(tmp_path, training=replace(QUICK, threads=3))
    run = PipelineRun(pipeline, tmp_path / "out")
    claim_folder(run.out, prepare(run), force=False)
    again = begun(compression(tmp_path, training=replace(QUICK, threads=None, device="auto")), tmp_path / "out")
    assert again.pipeline == run.pipeline
    assert again.pipeline.named["super-network"].training.threads == 3  # type: ignore[attr-defined]


def test_a_teacher_reads_its_model_rows_and_length(tmp_path: Path) -> None:
    stage, run = started(tmp_path)
    assert {"weights", "card", "training rows", "tokeniser"} <= stage.contents(run).keys()
    stage, _ = started(tmp_path, training=replace(QUICK, length=None))
    assert stage.training.length is not None
    assert 8 <= stage.training.length <= 32
    assert started(tmp_path)[0].training.length == LENGTH


@pytest.mark.slow
def test_a_weak_teacher_is_refused_and_accepted_without_training_it_again(tmp_path: Path) -> None:
    slow = replace(QUICK, learning_rate=1e-9)
    strict = alone(compression(tmp_path, training=slow, teacher__accept_weak=False))
    for steps in (list(range(STEPS)), []):
        told = Told()
        with pytest.raises(WeakTeacher) as caught:
            made(begun(strict, tmp_path / "out", told), "teacher")
        assert told.steps[FINE] == steps
        assert caught.value.weakness.rows == 10
        for fact in ("accuracy", "epochs (now 1)", "1e-09", "accept_weak"):
            assert fact in str(caught.value)
    told = Told()
    made(begun(alone(compression(tmp_path, training=slow)), tmp_path / "out", told), "teacher")
    assert told.steps[FINE] == []
    assert any("accept_weak" in line for line in told.lines)


def test_a_head_that_is_replaced_is_told(tmp_path: Path) -> None:
    told = Told()
    model = bert(tmp_path, "tokens", HeadSpec("token-classification", 3))
    begun(compression(tmp_path, model=model), tmp_path / "out", told)
    assert any("the head of tokens is replaced" in line for line in told.lines)


@pytest.mark.parametrize(("length", "is_told"), [(8, True), (LENGTH, False)])
def test_rows_that_are_cut_are_told(tmp_path: Path, length: int, is_told: bool) -> None:
    told = Told()
    begun(compression(tmp_path, training=replace(QUICK, length=length)), tmp_path / "out", told)
    assert any(f"longer than {length} tokens" in line for line in told.lines) == is_told


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"search__searcher": "linus"}, "'linas'"),
        ({"search__searcher": {"name": "linas", "popluation": 3}}, "popluation"),
        ({"super_network__learning_rate": 0.0}, "learning rate"),
        ({"super_network__learning_rate": float("inf")}, "learning rate"),
        ({"training": replace(QUICK, learning_rate=-1.0)}, "learning rate"),
        ({"hidden": (8, 99)}, "16"),
        ({"hidden": (0,)}, "hidden"),
        ({"targets": ("macs=50%", "mac=50%")}, "'mac'"),
        ({"super_network__lesson__labels": 2.0}, "labels"),
        ({"super_network__lesson__temperature": 0.0}, "temperature"),
        ({"teacher__epochs": 0.0}, "epochs"),
        ({"scores__order": "movement"}, "movement"),
    ],
    ids=str,
)
def test_what_a_late_stage_would_refuse_is_refused_at_once(options: dict[str, Any], told: str, tmp_path: Path) -> None:
    with pytest.raises(FormwrightError, match=told):
        begun(compression(tmp_path, **options), tmp_path / "out")
    assert not (tmp_path / "out").exists()


# --- the plan of time ---

SPEEDS = {"step": 1.0, "batch": 1.0, "judging": 1.0, "answer": 0.5, "answers": 5.0, "validation": 1.0, "slowed": 0.5}


def planned(run: PipelineRun) -> Any:
    budget = budget_of(run)
    return within(budget, dict.fromkeys(budget.stages, SPEEDS))


def test_without_hours_the_epochs_count(tmp_path: Path) -> None:
    options = {"teacher__epochs": 2.0, "super_network__epochs": 3.0, "trials": 7, "deliver__epochs": 0.4}
    run = begun(compression(tmp_path, **options), tmp_path / "out")
    assert budget_of(run).usual == {
        "teacher": {"steps": 2 * STEPS},
        "scores": {"batches": 64},
        "super-network": {"steps": 3 * STEPS},
        "search": {"trials": 7, "rows": 10},
        "deliver": {"steps": 2},
    }
    few = begun(compression(tmp_path, teacher__epochs=0.001, super_network__epochs=0.001), tmp_path / "few")
    assert [budget_of(few).usual[name]["steps"] for name in ("teacher", "super-network")] == [1, 1]
    assert budget_of(few).usual["deliver"] == {}


def test_hours_scale_the_stages(tmp_path: Path) -> None:
    options = {"teacher__epochs": 20.0, "super_network__epochs": 60.0, "trials": 100}
    run = begun(compression(tmp_path, **options), tmp_path / "out", hours=0.1)
    found = planned(run)
    assert sum(budget_of(run).estimate(found, dict.fromkeys(found, SPEEDS)).values()) <= 360
    assert 40 <= found["teacher"]["steps"] < 100
    assert 60 <= found["super-network"]["steps"] <= 60 * STEPS
    assert 30 <= found["search"]["trials"] < 100
    few = planned(begun(compression(tmp_path), tmp_path / "out", hours=0.01))  # the least, though it takes longer
    assert (few["teacher"]["steps"], few["super-network"]["steps"], few["search"]["trials"]) == (5, 60, 30)


@pytest.mark.parametrize("spans", [False, True])
def test_a_short_search_judges_by_some_of_many_rows(
    spans: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But for questions about texts, which are judged by all their rows together."""
    task = TaskChoice("squad", data=str(squad(tmp_path))) if spans else None
    options = {"teacher__epochs": 20.0, "super_network__epochs": 60.0, "task": task}
    run = begun(compression(tmp_path, **options), tmp_path / "out", hours=0.1)
    rows, stage = budget_of(run).usual["search"]["rows"], run.pipeline.named["search"]
    assert planned(run)["search"]["rows"] == rows  # which are few anyway
    monkeypatch.setattr("formwright.pipeline.shared_evaluator._LEAST_ROWS", 4)
    found = planned(run)
    assert found["search"]["rows"] == rows if spans else 4 <= found["search"]["rows"] < rows
    assert 16 <= found["scores"]["batches"] < 64
    kept = stage.planned(found["search"], run.stage(stage))  # type: ignore[attr-defined]
    assert kept.evaluator.rows == (None if spans else found["search"]["rows"])
    assert kept.stop.trials == found["search"]["trials"]
    whole = stage.planned({"trials": 5, "rows": rows}, run.stage(stage))  # type: ignore[attr-defined]
    assert whole is stage


@pytest.mark.slow
def test_movement_is_kept_for_the_scores(tmp_path: Path) -> None:
    run = begun(compression(tmp_path, order="movement", hidden=(8,)), tmp_path / "out")
    scores = made(run, "scores")
    moved = read_importance(tmp_path / "out" / "teacher" / "movement.safetensors")
    assert [one.tolist() for one in scores.space.scores] == [one.tolist() for one in moved.scores]
    assert "hidden" in scores.order.through


SCORES = (np.array([0.5, -1.0]), np.array([1e-300, 2.0, 3.0]), np.array([7.0])) * 5  # more than ten, whose names sort


@pytest.mark.parametrize(
    "importance",
    [Importance(SCORES), Importance(SCORES, {"hidden": np.arange(4.0), "decoder hidden": np.arange(3.0)[::-1]})],
)
def test_importance_survives_its_file(importance: Importance, tmp_path: Path) -> None:
    path = tmp_path / "below" / "importance.safetensors"
    write_importance(path, importance)
    again = read_importance(path)
    assert [scores.tolist() for scores in again.scores] == [scores.tolist() for scores in importance.scores]
    assert {name: scores.tolist() for name, scores in again.through.items()} == {
        name: scores.tolist() for name, scores in importance.through.items()
    }


def test_files_that_cannot_be_read_are_named_with_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "broken").write_bytes(b"{")
    for name in ("absent", "broken"):
        with pytest.raises(IllegalInput, match=rf"cannot read .*{name}.*remove"):
            read_importance(tmp_path / name)


@pytest.mark.slow
@pytest.mark.parametrize("order", ["first-order", "movement", "l1", "none"])
def test_parts_are_put_in_the_order_that_is_asked_for(order: Order, tmp_path: Path) -> None:
    told = Told()
    run = begun(compression(tmp_path, order=order, scores__batches=5), tmp_path / "out", told)
    found = made(run, "scores")
    assert [len(one) for one in found.space.scores] == [4, 64] * 2
    assert not found.space.through
    teacher = run.artifact(run.pipeline.named["teacher"]).model
    weights = dict(teacher.named_parameters())
    wanted = {"l1": magnitude(weights, BERT, teacher.spec), "none": uniform(BERT)}.get(order, found.space)
    for one, expected in zip(found.order.scores, wanted.scores, strict=True):
        assert one == pytest.approx(expected)
    assert told.steps.get("scoring parts of the teacher 5") == (None if order == "movement" else [0, 1, 2, 3, 4])
    assert told.steps["judging the teacher 1"] == [0]
    again = made(begun(compression(tmp_path, order=order, scores__batches=5), tmp_path / "out"), "scores")
    assert [one.tolist() for one in again.order.scores] == [one.tolist() for one in found.order.scores]
    assert torch.get_num_threads() >= 1


@pytest.mark.slow
def test_the_hidden_size_is_scored_where_it_may_shrink(tmp_path: Path) -> None:
    run = begun(compression(tmp_path, hidden=(8,), order="l1"), tmp_path / "out")
    found = made(run, "scores")
    assert {name: len(scores) for name, scores in found.space.through.items()} == {"hidden": 16, "pooled": 16}
    assert list(found.order.through) == ["hidden", "pooled"]
