"""The test split is opened once, and that it was is on record."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch
from tests.evaluate.toy import SIZES, TASK, UNTESTED, card, files, trainer

from formwright.arch.card import Card
from formwright.core.errors import EvaluationFailed, IllegalInput
from formwright.core.records import Request
from formwright.evaluate import final
from formwright.evaluate.context import Context
from formwright.evaluate.final import RECORD, Final, Verdict, openings, score_without_training
from formwright.evaluate.training import Start
from formwright.nn.task_model import SequenceHead, TaskModel
from formwright.tasks.task import Task
from formwright.train import fit as training_module
from formwright.train.distil import Mix, Teaching
from formwright.train.fit import Training, fresh_model
from formwright.train.judge import Judged, judge
from formwright.train.judge import judged as really_judged
from formwright.train.loop import Paused
from formwright.train.prepare import Prepared, PreparedRows, prepare

CARD = card(32)
FINAL = Final(trainer())


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Count the rows of each judgement that the final evaluation makes."""
    sizes: list[int] = []

    def counted(model: Any, prepared: Prepared, part: PreparedRows) -> Judged:
        sizes.append(len(part.rows))
        return really_judged(model, prepared, part)

    monkeypatch.setattr(final, "judged", counted)
    return sizes


def verdict(folder: Path, seed: int = 0) -> Verdict:
    return FINAL.verdict(Request(CARD), Context(seed, folder))


def test_validation_and_test_are_scored_and_what_was_spent_is_counted(tmp_path: Path, judged: list[int]) -> None:
    found = FINAL.evaluate(Request(CARD), Context(0, tmp_path))
    alone = trainer().evaluate(Request(CARD), Context())
    assert found.metrics.keys() == {"accuracy", "test/accuracy"}
    assert (found.metrics["accuracy"], judged) == (alone.metrics["accuracy"], [SIZES[2]])
    assert (found.spent.steps, found.spent.macs) == (12, alone.spent.macs)
    assert found.spent.seconds > 0


def test_a_nan_score_fails_before_the_test_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("formwright.train.fit.judged", lambda *_: Judged({"accuracy": float("nan")}, {}))
    with pytest.raises(EvaluationFailed, match=r"accuracy on validation.*nan.*11"):
        verdict(tmp_path)
    assert openings(tmp_path) == []


def test_a_test_score_that_is_no_number_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        final, "judged", lambda *_: Judged({"accuracy": float("inf")}, {"accuracy": np.ones((SIZES[2], 1))})
    )
    with pytest.raises(EvaluationFailed, match=r"accuracy on test.*inf.*11"):
        verdict(tmp_path)


def test_a_lack_of_memory_is_a_failure(tmp_path: Path) -> None:
    def hungry(*_: object) -> TaskModel:
        raise MemoryError

    with pytest.raises(EvaluationFailed, match="memory was used up before the first step"):
        Final(trainer(), hungry).verdict(Request(CARD), Context(0, tmp_path))


def raised_by(number: float) -> Start:
    """Start with fresh weights, and a bias that nobody would draw."""

    def start(card: Card, prepared: Prepared, training: Training) -> TaskModel:
        model = fresh_model(card, prepared, training)
        torch.nn.init.constant_(cast(SequenceHead, model.head).output.bias, number)
        return model

    return start


def test_a_model_can_be_fine_tuned(tmp_path: Path) -> None:
    slow = trainer(learning_rate=1e-9)
    for number in (50.0, 70.0):  # in one folder: neither goes on with the other's run
        found = Final(slow, raised_by(number)).verdict(Request(CARD), Context(0, tmp_path))
        assert cast(SequenceHead, found.model.head).output.bias.tolist() == pytest.approx([number, number])
    assert found.openings == 2
    again = Final(slow, raised_by(70.0)).verdict(Request(CARD), Context(0, tmp_path))
    assert again.openings == 2
    assert len(list((tmp_path / "runs").iterdir())) == 2


class Always(torch.nn.Module):
    """A teacher that says of every row that it is of the second class."""

    def __init__(self, sure: float) -> None:
        super().__init__()
        self.sure = torch.nn.Parameter(torch.tensor([-sure, sure]))

    def forward(self, inputs: torch.Tensor, *_: object) -> torch.Tensor:
        return self.sure.expand(len(inputs), 2)


def test_a_model_learns_from_its_teacher_where_there_is_one(tmp_path: Path) -> None:
    quick, mix = trainer(learning_rate=1e-2), Mix(labels=0.0, scores=1.0)
    for sure in (8.0, -8.0):  # in one folder: neither goes on with the other's run
        taught = Final(quick, teaching=Teaching(Always(sure), mix)).verdict(Request(CARD), Context(0, tmp_path))
        bias = cast(SequenceHead, taught.model.head).output.bias
        assert (bias[1] > bias[0]) == (sure > 0)
    alone = Final(quick).verdict(Request(CARD), Context(0, tmp_path))
    assert alone.validation["accuracy"] > taught.validation["accuracy"]  # the teacher knows nothing
    assert len(list((tmp_path / "runs").iterdir())) == 3
    again = Final(quick, teaching=Teaching(Always(8.0), mix)).verdict(Request(CARD), Context(0, tmp_path))
    assert again.openings == 3


def test_the_test_score_is_that_of_the_model_and_the_opening_is_on_record(tmp_path: Path) -> None:
    found = verdict(tmp_path)
    prepared = prepare(FINAL.trainer.task, CARD, 12)
    rows = FINAL.trainer.task.splits().test
    assert rows is not None
    assert judge(found.model, prepared, prepared.part(rows)) == found.test
    assert judge(found.model, prepared, prepared.validation) == found.validation
    (entry,) = openings(tmp_path)
    assert (entry["task"], entry["rows"], entry["metrics"]) == ("toy", SIZES[2], found.test)
    assert found.openings == 1


def test_a_second_look_gives_the_record(tmp_path: Path, judged: list[int]) -> None:
    first = verdict(tmp_path)
    entries = openings(tmp_path)
    entries[0]["metrics"] = {"accuracy": 0.123}
    (tmp_path / RECORD).write_text(json.dumps(entries), encoding="utf-8")
    second = verdict(tmp_path)
    assert judged == [SIZES[2]]
    assert (second.test, second.openings) == ({"accuracy": 0.123}, 1)
    assert second.validation == first.validation


def test_another_model_opens_it_again(tmp_path: Path, judged: list[int]) -> None:
    verdict(tmp_path)
    assert verdict(tmp_path, seed=1).openings == 2
    assert judged == [SIZES[2]] * 2


def test_an_opening_that_crashed_stays_on_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    def crash(*_: object) -> None:
        seen.extend(openings(tmp_path))
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(final, "judged", crash)
        with pytest.raises(KeyboardInterrupt):
            verdict(tmp_path)
    assert [entry["metrics"] for entry in seen] == [None]
    assert openings(tmp_path) == seen
    found = verdict(tmp_path)
    assert [entry["metrics"] for entry in openings(tmp_path)] == [None, found.test]
    assert found.openings == 2
    assert verdict(tmp_path).openings == 2


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[{",
        b"{}",
        b"7",
        b"[1]",
        b"[{}]",
        b'[{"name": "x"}]',
        b'[{"name": 3, "metrics": null}]',
        b'[{"name": "x", "metrics": "high"}]',
        b'[{"name": "x", "metrics": {"accuracy": "high"}}]',
        b'[{"name": "x", "metrics": {"accuracy": 0.5}}]',
        b'[{"name": "x", "metrics": {"accuracy": 0.5}, "evidence": {"rows": 4, "intervals": 3, "majority": null}}]',
        b"\xff",
    ],
    ids=str,
)
def test_an_unreadable_record_is_refused_first(content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / RECORD).write_bytes(content)
    monkeypatch.delattr(final, "fit")
    with pytest.raises(IllegalInput, match=r"record of test openings") as caught:
        verdict(tmp_path)
    assert str(tmp_path / RECORD) in str(caught.value)
    assert (tmp_path / RECORD).read_bytes() == content


def test_an_unwritable_record_keeps_the_test_closed(
    tmp_path: Path, judged: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(final, "write_whole", refused)
    with pytest.raises(IllegalInput, match=r"cannot write the record .*Read-only file system; without it the test spl"):
        verdict(tmp_path)
    assert judged == []


def test_a_task_without_test_rows_is_refused_before_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(final, "fit")
    with pytest.raises(IllegalInput, match="the task untested has no test rows: validation is all there is, whole"):
        Final(trainer(task=UNTESTED)).verdict(Request(CARD), Context(0, tmp_path))
    assert files(tmp_path) == []


def test_a_task_without_test_rows_leaves_no_record(tmp_path: Path) -> None:
    prepared = prepare(UNTESTED, CARD, 12)
    with pytest.raises(IllegalInput, match="has no test rows"):
        final.test_once(verdict(tmp_path / "other").model, prepared, "model", tmp_path / "mine")
    assert not (tmp_path / "mine").exists()


def test_a_model_can_be_had_without_opening_the_test(tmp_path: Path, judged: list[int]) -> None:
    found = Final(trainer(task=UNTESTED)).verdict(Request(CARD), Context(0, tmp_path), test=False)
    assert (found.test, found.openings, judged) == (None, 0, [])
    assert not (tmp_path / RECORD).exists()


def test_earlier_openings_are_told_where_no_test_is_wanted(tmp_path: Path) -> None:
    verdict(tmp_path)
    found = FINAL.verdict(Request(CARD), Context(0, tmp_path), test=False)
    assert (found.test, found.openings) == (None, 1)


def test_a_training_that_was_stopped_is_gone_on_with(tmp_path: Path) -> None:
    told: list[int] = []

    def stop_at_five(step: int, _: float) -> None:
        told.append(step)
        if step == 4:
            raise Paused

    with pytest.raises(Paused):
        FINAL.verdict(Request(CARD), Context(0, tmp_path / "stopped", after_step=stop_at_five))
    assert not (tmp_path / "stopped" / RECORD).exists()
    again = FINAL.verdict(Request(CARD), Context(0, tmp_path / "stopped", after_step=lambda step, _: told.append(step)))
    assert told == list(range(12))
    assert again.spent.steps == 12
    whole = verdict(tmp_path / "whole")
    assert (again.validation, again.test) == (whole.validation, whole.test)
    pairs = zip(again.model.parameters(), whole.model.parameters(), strict=True)
    assert all(one.equal(other) for one, other in pairs)


def by_turns(monkeypatch: pytest.MonkeyPatch, scores: list[float]) -> list[list[torch.Tensor]]:
    """Let judgements in between give these scores one after the other, and note the weights they were given for."""
    seen: list[list[torch.Tensor]] = []
    told = iter(scores)

    def told_score(model: Any, prepared: Prepared, _: PreparedRows) -> dict[str, float]:
        seen.append([parameter.detach().clone() for parameter in model.parameters()])
        return {prepared.task.metric: next(told)}

    monkeypatch.setattr(training_module, "judge", told_score)
    return seen


def test_the_last_training_keeps_the_best_weights_and_stops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = replace(trainer().training.recipe, steps=40)
    few = replace(trainer().training, recipe=recipe, judge_every=2, patience=3, least=10)
    watched = Final(replace(trainer(), training=few))
    seen = by_turns(monkeypatch, [0.1, 0.9, 0.2, 0.3, 0.4, 0.5])
    found = watched.verdict(Request(CARD), Context(0, tmp_path / "whole"))
    assert (found.spent.steps, found.best_step) == (10, 4)  # three without a better one, but 10 steps at least
    assert all(map(torch.equal, found.model.parameters(), seen[1]))
    assert not all(map(torch.equal, found.model.parameters(), seen[-1]))
    prepared = prepare(TASK, CARD, few.length)
    assert found.validation == judge(found.model, prepared, prepared.validation)

    def stop(step: int, _: float) -> None:
        if step == 6:
            raise Paused

    by_turns(monkeypatch, [0.1, 0.9, 0.2])
    with pytest.raises(Paused):
        watched.verdict(Request(CARD), Context(0, tmp_path / "stopped", after_step=stop))
    by_turns(monkeypatch, [0.3, 0.4])
    again = watched.verdict(Request(CARD), Context(0, tmp_path / "stopped"))
    assert (again.spent.steps, again.best_step, again.validation) == (10, 4, found.validation)
    assert all(map(torch.equal, again.model.parameters(), found.model.parameters()))


def test_evidence_is_recorded_with_the_opening_and_read_again(tmp_path: Path) -> None:
    found = verdict(tmp_path)
    assert found.evidence.keys() == {"validation", "test"}
    for split, scores in (("validation", found.validation), ("test", found.test or {})):
        low, high = found.evidence[split].intervals["accuracy"]
        assert low <= scores["accuracy"] <= high
    assert [found.evidence[split].rows for split in ("validation", "test")] == list(SIZES[1:])
    assert (tmp_path / "rows-test.npz").is_file()
    assert verdict(tmp_path).evidence == found.evidence


def finished_model(task: Task = TASK) -> tuple[TaskModel, Prepared]:
    prepared = prepare(task, CARD, 12)
    return fresh_model(CARD, prepared, trainer().training), prepared


def test_a_model_that_needs_no_training_is_judged_and_tested_once(tmp_path: Path, judged: list[int]) -> None:
    model, prepared = finished_model()
    first = score_without_training(model, prepared, Context(folder=tmp_path))
    assert first.model is model
    assert first.validation == judge(model, prepared, prepared.validation)
    assert first.test is not None
    assert first.spent.steps == 0
    again = score_without_training(model, prepared, Context(folder=tmp_path))
    assert (again.validation, again.test, again.openings) == (first.validation, first.test, 1)
    assert judged == [SIZES[1], SIZES[2], SIZES[1]]  # the test rows once
    with torch.no_grad():
        next(model.parameters()).add_(1.0)
    assert score_without_training(model, prepared, Context(folder=tmp_path)).openings == 2  # another model


def test_without_test_rows_a_finished_model_is_validated_alone(tmp_path: Path) -> None:
    verdict = score_without_training(*finished_model(UNTESTED), Context(folder=tmp_path))
    assert (verdict.test, verdict.openings, files(tmp_path)) == (None, 0, ["rows-validation.npz"])


def test_a_final_evaluation_needs_a_folder_for_the_record() -> None:
    with pytest.raises(IllegalInput, match="folder"):
        score_without_training(*finished_model(), Context())
    with pytest.raises(IllegalInput, match="folder"):
        FINAL.evaluate(Request(CARD), Context())
