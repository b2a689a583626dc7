"""The contract finds kinds of data that break it: one broken record for each promise."""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.train.cases import ENCODER, few

from formwright.arch.card import Card
from formwright.core.errors import FormwrightError
from formwright.core.registry import Late
from formwright.nn.deploy.runtimes import FileModel
from formwright.nn.hf.model_folder import SUMS
from formwright.nn.task_model import TaskModel
from formwright.tasks import text_kinds
from formwright.tasks.task import Task
from formwright.tasks.text_kinds import SEQUENCE_CLASSIFICATION
from formwright.testing.kind_contract import KindContract
from formwright.train.judge import best_class, one_answer_each
from formwright.train.losses import classes
from formwright.train.prepare import Prepared
from formwright.train.streams import Batch, sentences


class Sentiment(KindContract):
    def task(self) -> Task:
        return few("mini-glue/sst2", 64)

    def card(self) -> Card:
        return ENCODER


class TestSentiment(Sentiment):
    """The record itself keeps the contract."""


def _random_batch(examples: Any, rows: Any) -> Batch:
    return sentences(examples, np.random.default_rng().permutation(len(examples))[: len(rows)])


def _always_apart(answers: Any, batch: Batch, _: float) -> torch.Tensor:
    return (answers.scores - answers.teacher_scores).abs().mean() + 1


def _by_place(scores: torch.Tensor) -> Any:
    return best_class(scores) * 0 + np.arange(len(scores))  # an answer that depends on the other rows of its batch


def _under_another_name(model: Any, prepared: Any, part: Any) -> Any:
    return {"pearson": one_answer_each(model, prepared, part)["accuracy"]}


BROKEN: dict[str, dict[str, Any]] = {
    "test_it_is_known_by_its_name_and_all_its_functions_exist": {"loss": Late("formwright.train.losses:no_such_loss")},
    "test_a_step_has_the_same_batch_every_time": {"batch": _random_batch},
    "test_the_loss_is_a_number_with_gradients": {"loss": lambda scores, batch: classes(scores.detach(), batch)},
    "test_a_student_that_answers_like_its_teacher_is_at_no_distance": {"distillation_loss": _always_apart},
    "test_training_lowers_the_loss_and_repeats_exactly": {"loss": lambda scores, batch: classes(scores, batch) * 0 + 1},
    "test_scores_lie_in_the_range_of_their_metrics": {"judge": _under_another_name},
    "test_an_answer_does_not_depend_on_the_other_rows_of_its_batch": {"answer": _by_place},
    "test_it_predicts_one_answer_for_each_row": {"predict": lambda *_: [("positive", 1.0)]},
    "test_scores_of_tokens_are_one_vector_each": {"per_token": True},
}


@pytest.mark.parametrize("promise", BROKEN)
def test_a_broken_promise_is_found(promise: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    broken = replace(SEQUENCE_CLASSIFICATION, **BROKEN[promise])
    monkeypatch.setattr(text_kinds, "SEQUENCE_CLASSIFICATION", broken)
    test: Callable[..., None] = getattr(Sentiment, promise)
    kit = type("Kit", (Sentiment,), {})()
    call = partial(test, kit, tmp_path) if promise == "test_it_predicts_one_answer_for_each_row" else partial(test, kit)
    with pytest.raises((AssertionError, AttributeError, RuntimeError, FormwrightError, pytest.fail.Exception)):
        call()


class OtherLabels(Sentiment):
    """A model whose folder has its labels in another order."""

    def saved(self, model: TaskModel, prepared: Prepared, folder: Path, scores: Any) -> Path:
        found = super().saved(model, prepared, folder, scores)
        content = json.loads((found / "config.json").read_text())
        content["id2label"] = {"0": content["id2label"]["1"], "1": content["id2label"]["0"]}
        (found / "config.json").write_text(json.dumps(content))
        (found / SUMS).unlink()
        return found


class OtherScores(Sentiment):
    """A model whose modelling code in the folder does something else."""

    def saved(self, model: TaskModel, prepared: Prepared, folder: Path, scores: Any) -> Path:
        found = super().saved(model, prepared, folder, scores)
        (code,) = found.glob("formwright_nn_hf_models.py")
        result = "return self.head(output, mask)"
        assert result in code.read_text()
        code.write_text(code.read_text().replace(result, f"{result} + 1"))
        (found / SUMS).unlink()
        return found


def _otherwise_in_files(model: Any, prepared: Any, part: Any) -> Any:
    found = one_answer_each(model, prepared, part)
    if not isinstance(model, FileModel):
        return found
    return {name: (1 - answers, truth) for name, (answers, truth) in found.items()}


@pytest.mark.slow
@pytest.mark.parametrize("kit", [OtherLabels, OtherScores])
def test_a_folder_that_transformers_reads_otherwise_is_found(kit: type[Sentiment], tmp_path: Path) -> None:
    test = Sentiment.test_transformers_loads_the_model_and_gives_the_same_scores
    with pytest.raises(AssertionError):
        test(type("Kit", (kit,), {})(), tmp_path)


@pytest.mark.slow
def test_a_file_that_is_judged_otherwise_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    broken = replace(SEQUENCE_CLASSIFICATION, judge=_otherwise_in_files)
    monkeypatch.setattr(text_kinds, "SEQUENCE_CLASSIFICATION", broken)
    with pytest.raises(AssertionError):
        Sentiment.test_its_onnx_file_has_the_scores_of_the_model_again(type("Kit", (Sentiment,), {})(), tmp_path)
