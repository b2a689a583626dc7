"""Training to the end: what it depends on, what it leaves, and how it fails."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from tests.evaluate.toy import TASK, card, files, trainer
from torch import Tensor

from formwright.core.errors import EvaluationFailed
from formwright.core.protocols import Evaluator
from formwright.core.records import Budget, Request
from formwright.evaluate.context import Context
from formwright.evaluate.full import Full
from formwright.evaluate.training import WEIGHTS
from formwright.train import loop
from formwright.train.fit import fresh_model
from formwright.train.judge import Judged, judge
from formwright.train.prepare import prepare

CARD = card(32, 32)
FULL = Full(trainer())


def test_it_is_an_evaluator() -> None:
    assert isinstance(FULL, Evaluator)


def test_the_same_seed_gives_the_same_scores_and_weights(tmp_path: Path) -> None:
    one, same = (FULL.evaluate(Request(CARD), Context(3, tmp_path / name)) for name in ("one", "same"))
    assert (one.metrics, one.artifacts) == (same.metrics, same.artifacts)
    weights = [(tmp_path / name / one.artifacts[WEIGHTS]).read_bytes() for name in ("one", "same")]
    assert weights[0] == weights[1]


def test_another_seed_gives_other_weights(tmp_path: Path) -> None:
    one, other = (FULL.evaluate(Request(CARD), Context(seed, tmp_path)) for seed in (3, 4))
    assert one.artifacts[WEIGHTS] != other.artifacts[WEIGHTS]
    tensors = [load_file(tmp_path / found.artifacts[WEIGHTS])["head.output.weight"] for found in (one, other)]
    assert not torch.equal(*tensors)


def test_scores_do_not_depend_on_the_global_generator(tmp_path: Path) -> None:
    found = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        observation = FULL.evaluate(Request(CARD), Context(0, tmp_path / str(seed)))
        found.append((tmp_path / str(seed) / observation.artifacts[WEIGHTS]).read_bytes())
    assert found[0] == found[1]


def test_the_budget_does_not_matter() -> None:
    whole, limited = (FULL.evaluate(Request(CARD, Budget(steps)), Context()) for steps in (None, 2))
    assert whole.metrics == limited.metrics
    assert whole.spent.steps == limited.spent.steps == 12


def test_what_was_spent_is_accounted_for() -> None:
    one = FULL.evaluate(Request(CARD), Context()).spent
    twice = Full(trainer(steps=24)).evaluate(Request(CARD), Context()).spent
    assert one.seconds > 0
    assert (twice.steps, twice.macs) == (24, 2 * one.macs)


def test_the_kept_weights_load_and_score_the_same(tmp_path: Path) -> None:
    found = FULL.evaluate(Request(CARD), Context(5, tmp_path))
    prepared = prepare(TASK, CARD, 12)
    model = fresh_model(CARD, prepared, FULL.trainer.training)
    assert judge(model, prepared, prepared.validation) != found.metrics
    model.load_state_dict(load_file(tmp_path / found.artifacts[WEIGHTS]))
    assert judge(model, prepared, prepared.validation) == found.metrics


def test_without_a_folder_nothing_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert FULL.evaluate(Request(CARD), Context()).artifacts == {}
    assert files(tmp_path) == []


def test_every_step_is_told() -> None:
    told: list[tuple[int, float]] = []
    FULL.evaluate(Request(CARD), Context(after_step=lambda step, loss: told.append((step, loss))))
    assert [step for step, _ in told] == list(range(12))
    assert all(loss > 0 for _, loss in told)


@pytest.mark.slow
def test_a_card_can_be_learnt() -> None:
    found = Full(trainer(steps=200)).evaluate(Request(CARD), Context())
    assert found.metrics["accuracy"] > 0.85


def failing_at(step: int, failure: Tensor | Exception) -> object:
    """Give a stand-in for the loss, which fails at a step."""
    calls: list[None] = []

    def loss(scores: Tensor, _: object) -> Tensor:
        calls.append(None)
        if len(calls) <= step:
            return scores.sum()
        if isinstance(failure, Exception):
            raise failure
        return failure

    return lambda _: loss


@pytest.mark.parametrize(
    ("failure", "kind", "message"),
    [
        (torch.tensor(float("nan")), loop.Diverged, "the loss is nan at step 7; lower the learning rate"),
        (torch.tensor(float("inf")), loop.Diverged, "the loss is inf at step 7"),
        (MemoryError(), loop.OutOfMemory, "the memory was used up at step 7; try a batch smaller than 16"),
        (torch.OutOfMemoryError("CUDA out of memory"), loop.OutOfMemory, "at step 7"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory"), loop.OutOfMemory, "at step 7"),
    ],
    ids=["nan", "inf", "python", "cuda", "cpu"],
)
def test_failures_say_why_and_at_which_step(
    failure: Tensor | Exception,
    kind: type[EvaluationFailed],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setattr("formwright.train.fit.loss_of", failing_at(7, failure))
    with pytest.raises(kind, match=message) as caught:
        FULL.evaluate(Request(CARD), Context(0, tmp_path))
    assert isinstance(caught.value, EvaluationFailed)
    assert files(tmp_path) == []


def test_a_real_divergence_is_a_failure() -> None:
    with pytest.raises(EvaluationFailed, match=r"the loss is .* at step \d+"):
        Full(trainer(steps=40, learning_rate=1e30, warmup=0.0)).evaluate(Request(CARD), Context())


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("can't allocate memory: you tried to allocate 9 bytes")])
def test_a_lack_of_memory_while_judging_is_a_failure(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def judging(*_: object) -> None:
        raise error

    monkeypatch.setattr("formwright.train.fit.judged", judging)
    with pytest.raises(EvaluationFailed, match=r"memory was used up .* while judging"):
        FULL.evaluate(Request(CARD), Context())


def test_our_own_mistakes_are_no_failures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("formwright.train.fit.loss_of", failing_at(2, RuntimeError("shapes do not match")))
    with pytest.raises(RuntimeError, match="shapes do not match"):
        FULL.evaluate(Request(CARD), Context())


def test_a_score_that_is_no_number_is_a_failure(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("formwright.train.fit.judged", lambda *_: Judged({"accuracy": float("nan")}, {}))
    with pytest.raises(EvaluationFailed, match="the accuracy on validation is nan after step 11"):
        FULL.evaluate(Request(CARD), Context(0, tmp_path))
    assert files(tmp_path) == []


def test_early_stopping_keeps_the_best_weights(tmp_path: Path) -> None:
    watched = replace(FULL.trainer, training=replace(trainer(steps=60).training, judge_every=5, patience=1))
    found = Full(watched).evaluate(Request(CARD), Context(0, tmp_path))
    prepared = prepare(TASK, CARD, 12)
    model = fresh_model(CARD, prepared, watched.training)
    model.load_state_dict(load_file(tmp_path / found.artifacts[WEIGHTS]))
    assert judge(model, prepared, prepared.validation) == found.metrics
