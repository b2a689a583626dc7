"""Training to the end: what it depends on, what it leaves, and how it fails."""

import shutil
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from tests.evaluate.test_training import Foreign
from tests.evaluate.toy import TASK, card, files, trainer
from torch import Tensor

from formwright.core.errors import EvaluationFailed, IllegalInput, UnknownName
from formwright.core.protocols import Evaluator
from formwright.core.records import Budget, Measure, Observation, Request, Spent
from formwright.cost import params
from formwright.evaluate.basic import ByProxy, Combine, Full, Staged
from formwright.evaluate.context import Context
from formwright.evaluate.proxies.synflow import synflow
from formwright.evaluate.training import WEIGHTS, Trainer
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


def test_the_budget_does_not_matter_and_what_was_spent_is_accounted_for() -> None:
    whole, limited = (FULL.evaluate(Request(CARD, Budget(steps)), Context()) for steps in (None, 2))
    assert whole.metrics == limited.metrics
    assert whole.spent.steps == limited.spent.steps == 12
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


WATCHED = replace(trainer(), training=replace(trainer().training, judge_every=3, patience=9))


def stages(staged: Staged, folder: Path, *budgets: int | None, seed: int = 0) -> list[Observation]:
    return [staged.evaluate(Request(CARD, Budget(budget)), Context(seed, folder)) for budget in budgets]


def weights(folder: Path, found: Observation) -> bytes:
    return (folder / found.artifacts[WEIGHTS]).read_bytes()


@pytest.mark.parametrize("trained", [trainer(), WATCHED], ids=["plain", "watched"])
@pytest.mark.parametrize("budgets", [(3, 8, 12), (1, 11, None), (6, 7, 12)], ids=str)
def test_three_stages_equal_one_go_bit_for_bit(
    budgets: tuple[int | None, ...], trained: Trainer, tmp_path: Path
) -> None:
    whole = Full(trained).evaluate(Request(CARD), Context(0, tmp_path / "whole"))
    *_, last = stages(Staged(trained), tmp_path / "staged", *budgets)
    assert last.metrics == whole.metrics
    assert weights(tmp_path / "staged", last) == weights(tmp_path / "whole", whole)


def test_what_is_spent_are_the_steps_since_the_stage_before(tmp_path: Path) -> None:
    found = stages(Staged(trainer()), tmp_path, 3, 8, 12, 12)
    assert [one.spent.steps for one in found] == [3, 5, 4, 0]
    assert sum(one.spent.macs for one in found) == Full(trainer()).evaluate(Request(CARD), Context()).spent.macs


def test_only_new_steps_are_told(tmp_path: Path) -> None:
    told: list[int] = []
    stages(Staged(trainer()), tmp_path, 5)
    context = Context(0, tmp_path, after_step=lambda step, _: told.append(step))
    Staged(trainer()).evaluate(Request(CARD, Budget(9)), context)
    assert told == [5, 6, 7, 8]


def test_the_weights_of_each_stage_stay_as_they_were(tmp_path: Path) -> None:
    first, last = stages(Staged(trainer()), tmp_path / "staged", 4, 12)
    (alone,) = stages(Staged(trainer()), tmp_path / "alone", 4)
    assert weights(tmp_path / "staged", first) == weights(tmp_path / "alone", alone)
    assert weights(tmp_path / "staged", first) != weights(tmp_path / "staged", last)


def test_a_smaller_budget_after_a_larger_one_is_scored_as_if_it_came_first(tmp_path: Path) -> None:
    far, near = stages(Staged(trainer()), tmp_path / "both", 12, 4)
    (alone,) = stages(Staged(trainer()), tmp_path / "alone", 4)
    assert (near.metrics, near.spent.steps) == (alone.metrics, 4)
    assert weights(tmp_path / "both", near) == weights(tmp_path / "alone", alone)
    (again,) = stages(Staged(trainer()), tmp_path / "both", 12)
    assert (again.metrics, again.spent.steps) == (far.metrics, 0)  # the checkpoint is still there


def test_seeds_and_cards_do_not_mix(tmp_path: Path) -> None:
    stages(Staged(trainer()), tmp_path, 6)
    (other,) = stages(Staged(trainer()), tmp_path, 8, seed=1)
    assert other.spent.steps == 8
    narrow = Staged(trainer()).evaluate(Request(card(16), Budget(8)), Context(0, tmp_path))
    assert narrow.spent.steps == 8


@pytest.mark.parametrize("damage", ["truncated", "removed"])
def test_a_damaged_checkpoint_is_redone(damage: str, tmp_path: Path) -> None:
    stages(Staged(trainer()), tmp_path, 5)
    (newest,) = (tmp_path / "runs").glob("*/step-*")
    if damage == "removed":
        shutil.rmtree(newest)
    else:
        tensors = newest / "tensors.safetensors"
        tensors.write_bytes(tensors.read_bytes()[:-9])
    (last,) = stages(Staged(trainer()), tmp_path, 12)
    whole = Full(trainer()).evaluate(Request(CARD), Context())
    assert (last.metrics, last.spent.steps) == (whole.metrics, 12)


def test_without_a_folder_there_are_no_stages() -> None:
    with pytest.raises(IllegalInput, match="needs a folder for its checkpoints"):
        Staged(trainer()).evaluate(Request(CARD, Budget(3)), Context())


@pytest.mark.parametrize("steps", [0, 13])
def test_a_budget_outside_the_recipe_is_refused(steps: int, tmp_path: Path) -> None:
    with pytest.raises(IllegalInput, match=f"trains 1 to 12 steps; a budget of {steps} is outside"):
        stages(Staged(trainer()), tmp_path, steps)
    assert not list(tmp_path.iterdir())


PROXY_CARD = card(32, 16)


def test_proxies_by_name() -> None:
    found = ByProxy(("synflow", "params")).evaluate(Request(PROXY_CARD, Budget(3)), Context(4))
    assert found.metrics == {"synflow": synflow(PROXY_CARD, 4), "params": params(PROXY_CARD)}
    assert (found.spent.steps, found.spent.macs, found.artifacts) == (0, 0, {})
    assert found.spent.seconds > 0
    assert isinstance(ByProxy(("params",)), Evaluator)
    with pytest.raises(UnknownName, match="Nearest: 'synflow'"):
        ByProxy(("params", "sinflow"))
    with pytest.raises(IllegalInput, match="name at least one proxy: params, synflow"):
        ByProxy(())


COST_CARD = card(32)
NOTHING = Spent()


@dataclass(frozen=True)
class Fixed:
    """Observe the same of every card."""

    observation: Observation

    def evaluate(self, _: Request, __: Context) -> Observation:
        return self.observation


def fixed(name: str, value: float, spent: Spent = NOTHING, **artifacts: str) -> Fixed:
    return Fixed(Observation({name: value}, spent, artifacts))


def test_metrics_and_artifacts_are_joined_and_what_was_spent_is_added() -> None:
    one = fixed("accuracy", 0.5, Spent(1.5, 10, 100), weights="here")
    other = fixed("saliency", 3.0, Spent(0.5, 2, 7), notes="there")
    found = Combine((one, other), {"params": params, "size": lambda _: Measure(3, "MB")}).evaluate(
        Request(COST_CARD), Context()
    )
    assert found.metrics == {"accuracy": 0.5, "saliency": 3.0, "params": params(COST_CARD), "size": 3.0}
    assert found.spent == Spent(2.0, 12, 107)
    assert found.artifacts == {"weights": "here", "notes": "there"}
    assert isinstance(Combine((one,)), Evaluator)


def test_evaluators_see_the_request_and_the_context() -> None:
    seen: list[object] = []

    class Seeing:
        def evaluate(self, request: Request, context: Context) -> Observation:
            seen.append((request, context))
            return Observation({})

    request, context = Request(COST_CARD, Budget(3)), Context(5)
    Combine((Seeing(),)).evaluate(request, context)
    assert seen == [(request, context)]


@pytest.mark.parametrize(
    ("combined", "name"),
    [
        (Combine((fixed("accuracy", 0.5), fixed("accuracy", 0.5))), "metric 'accuracy'"),
        (Combine((fixed("params", 0.5),), {"params": params}), "metric 'params'"),
        (Combine((fixed("a", 0.5, weights="x"), fixed("b", 0.5, weights="y"))), "artifact 'weights'"),
    ],
)
def test_a_name_that_two_give_is_refused(combined: Combine, name: str) -> None:
    with pytest.raises(IllegalInput, match=f"give the {name}; leave one of them out"):
        combined.evaluate(Request(COST_CARD), Context())


def test_only_costs_need_a_card_of_ours() -> None:
    assert Combine((fixed("accuracy", 0.5),)).evaluate(Request(Foreign()), Context()).metrics == {"accuracy": 0.5}
    with pytest.raises(IllegalInput, match="only a formwright card"):
        Combine((), {"params": params}).evaluate(Request(Foreign()), Context())
