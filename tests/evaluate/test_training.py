"""Training to the end or in stages: what it depends on, what it leaves, and how it fails."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from tests.evaluate.toy import SIZES, TASK, UNTESTED, Foreign, block, card, files, rows, splits, trainer
from torch import Tensor

from formwright.arch.card import Card
from formwright.arch.embeddings import TokenEmbedding
from formwright.arch.layers import Block, Stack
from formwright.arch.ops import Attention, CrossAttention
from formwright.core.errors import EvaluationFailed, IllegalInput
from formwright.core.records import Budget, Observation, Request
from formwright.cost import macs
from formwright.evaluate.context import Context, card_of
from formwright.evaluate.training import WEIGHTS, Staged, Trainer, training_macs
from formwright.tasks.rows import PlainText, Splits, TextRows, TranslationRows
from formwright.tasks.task import Task
from formwright.tasks.tokeniser import Tokeniser, train_wordpiece
from formwright.train import loop
from formwright.train.fit import Training, fresh_model
from formwright.train.judge import Judged, judge
from formwright.train.prepare import prepare

CARD = card(32, 32)


def translations() -> Splits[TranslationRows]:
    texts = tuple(f"{one} {other}" for one in "abcd" for other in "abcd")
    part = TranslationRows(texts, tuple(text[::-1] for text in texts))
    return Splits(part, part, part)


class Content:
    """Rows that may change under a task, as those of a file do."""

    def __init__(self, splits: Splits[TextRows]) -> None:
        self.splits = splits

    def __call__(self) -> Splits[TextRows]:
        return self.splits


def vocabulary() -> Tokeniser:
    return train_wordpiece(TASK.search_view().train, 32)


def key(one: Trainer, design: Card = CARD, training: Training | None = None) -> str:
    training = training or one.training
    return one.key(design, prepare(one.task, design, training.length, one.tokeniser), training)


def test_only_our_cards_are_trained() -> None:
    with pytest.raises(IllegalInput, match="only a formwright card can be trained, not a Foreign"):
        trainer().observe(Request(Foreign()), Context())
    assert card_of(Request(CARD)) is CARD


def test_a_run_is_named_by_everything_that_decides_it() -> None:
    base = trainer()
    other = train_wordpiece(PlainText(("x y z",)), 30)
    keys = [
        key(base),
        key(base, card(32)),
        key(base, training=trainer(steps=13).training),
        key(base, training=base.seeded(Context(1))),
        key(base, training=replace(base.training, length=8)),
        key(Trainer(UNTESTED, base.training)),
        key(Trainer(TASK, base.training, other)),
    ]
    assert len(set(keys)) == len(keys)
    assert key(trainer(), card(32, 32)) == keys[0]


@pytest.mark.parametrize("split", [0, 1])
def test_other_rows_under_the_same_name_are_another_run(split: int) -> None:
    content = Content(splits())
    task = replace(TASK, splits=content)
    before = key(trainer(task=task))
    parts = [rows(0), rows(1), rows(2)]
    parts[split] = replace(parts[split], labels=parts[split].labels[::-1])
    content.splits = Splits(*parts)
    changed = replace(task)  # the same in all that the task says of itself
    assert changed == task
    assert key(trainer(task=changed)) != before
    content.splits = splits()
    assert key(trainer(task=replace(task))) == before


def test_the_rows_that_are_trained_on_are_those_of_the_file_as_it_is() -> None:
    content = Content(splits())
    task = replace(TASK, splits=content)
    prepare(task, CARD, 12)
    content.splits = Splits(rows(1), rows(0), None)
    assert len(prepare(replace(task), CARD, 12, vocabulary()).train.rows) == SIZES[1]


def test_padding_is_counted_as_far_as_it_is_computed() -> None:
    words = [("a " * number).strip() for number in (1, 2, 3, 10)]
    part = TextRows(tuple((text,) for text in words for _ in range(3)), (0, 1) * 6)
    task = Task("ragged", "sequence-classification", "accuracy", lambda: Splits(part, part, part), labels=("0", "1"))
    ragged = trainer(steps=2, task=task)
    training = replace(ragged.training, recipe=replace(ragged.training.recipe, batch=3, accumulate=2))
    prepared = prepare(task, CARD, 12)
    # batches of like rows, of 3, 4, 5 and 12 tokens with the special ones: no padding, and 6 tokens in the mean
    assert training_macs(CARD, prepared, training, 2) == 3 * 2 * (3 * 2) * macs(CARD, 6)
    whole = replace(training, recipe=replace(training.recipe, batch=99, accumulate=1))
    assert training_macs(CARD, prepared, whole, 2) == 3 * 2 * 12 * macs(CARD, 12)


def test_the_seed_of_a_context_is_that_of_the_recipe() -> None:
    assert trainer().seeded(Context(7)).recipe == replace(trainer().training.recipe, seed=7)


def test_a_model_whose_stacks_share_a_table_is_kept(tmp_path: Path) -> None:
    table = TokenEmbedding(32, 16, length=12)
    above = Block(16, Attention(2, 8), (32,), cross=CrossAttention(2, 8))
    design = Card(Stack(table, (block(),)), Stack(table, (above,), causal=True), share_embedding=True)
    task = Task("reversed", "seq2seq-lm", "perplexity", translations)
    found = trainer(steps=3, task=task).observe(Request(design), Context(0, tmp_path))
    assert files(tmp_path) == [found.artifacts[WEIGHTS]]
    names = load_file(tmp_path / found.artifacts[WEIGHTS]).keys()
    assert "transformer.encoder.embedding.tokens.weight" in names
    assert "transformer.decoder.embedding.tokens.weight" not in names


FULL = trainer()


def weights(folder: Path, found: Observation) -> bytes:
    return (folder / found.artifacts[WEIGHTS]).read_bytes()


def test_the_seed_alone_decides_scores_and_weights(tmp_path: Path) -> None:
    found = []
    for number, seed in enumerate((3, 3, 4)):
        torch.manual_seed(number)  # which is nobody's business
        found.append(FULL.evaluate(Request(CARD), Context(seed, tmp_path / str(number))))
    one, same, other = found
    assert (one.metrics, one.artifacts) == (same.metrics, same.artifacts)
    assert weights(tmp_path / "0", one) == weights(tmp_path / "1", same) != weights(tmp_path / "2", other)
    assert one.artifacts[WEIGHTS] != other.artifacts[WEIGHTS]


def test_the_budget_does_not_matter_and_what_was_spent_is_accounted_for() -> None:
    whole, limited = (FULL.evaluate(Request(CARD, Budget(steps)), Context()) for steps in (None, 2))
    assert whole.metrics == limited.metrics
    assert whole.spent.steps == limited.spent.steps == 12
    twice = trainer(steps=24).evaluate(Request(CARD), Context()).spent
    assert whole.spent.seconds > 0
    assert (twice.steps, twice.macs) == (24, 2 * whole.spent.macs)


def test_the_kept_weights_load_and_score_the_same(tmp_path: Path) -> None:
    found = FULL.evaluate(Request(CARD), Context(5, tmp_path))
    prepared = prepare(TASK, CARD, 12)
    model = fresh_model(CARD, prepared, FULL.training)
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
    found = trainer(steps=200).evaluate(Request(CARD), Context())
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
        (torch.tensor(float("nan")), loop.Diverged, "nan at step 7"),
        (torch.tensor(float("inf")), loop.Diverged, "inf at step 7"),
        (MemoryError(), loop.OutOfMemory, "at step 7.*smaller than 16"),
        (torch.OutOfMemoryError("CUDA out of memory"), loop.OutOfMemory, "at step 7"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory"), loop.OutOfMemory, "at step 7"),
    ],
    ids=["nan", "inf", "python", "cuda", "cpu"],
)
def test_failures_say_why_and_at_which_step(
    failure: Tensor | Exception, kind: type[Exception], message: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("formwright.train.fit.loss_of", failing_at(7, failure))
    with pytest.raises(kind, match=message) as caught:
        FULL.evaluate(Request(CARD), Context(0, tmp_path))
    assert isinstance(caught.value, EvaluationFailed)
    assert files(tmp_path) == []


def test_a_real_divergence_is_a_failure() -> None:
    with pytest.raises(EvaluationFailed, match=r"the loss is .* at step \d+"):
        trainer(steps=40, learning_rate=1e30, warmup=0.0).evaluate(Request(CARD), Context())


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
    with pytest.raises(EvaluationFailed, match=r"accuracy.*nan.*11"):
        FULL.evaluate(Request(CARD), Context(0, tmp_path))
    assert files(tmp_path) == []


def test_early_stopping_keeps_the_best_weights(tmp_path: Path) -> None:
    watched = replace(FULL, training=replace(trainer(steps=60).training, judge_every=5, patience=1))
    found = watched.evaluate(Request(CARD), Context(0, tmp_path))
    prepared = prepare(TASK, CARD, 12)
    model = fresh_model(CARD, prepared, watched.training)
    model.load_state_dict(load_file(tmp_path / found.artifacts[WEIGHTS]))
    assert judge(model, prepared, prepared.validation) == found.metrics


WATCHED = replace(trainer(), training=replace(trainer().training, judge_every=3, patience=9))


def stages(staged: Staged, folder: Path, *budgets: int | None, seed: int = 0) -> list[Observation]:
    return [staged.evaluate(Request(CARD, Budget(budget)), Context(seed, folder)) for budget in budgets]


@pytest.mark.parametrize("trained", [trainer(), WATCHED], ids=["plain", "watched"])
@pytest.mark.parametrize("budgets", [(3, 8, 12), (1, 11, None), (6, 7, 12)], ids=str)
def test_three_stages_equal_one_bit_for_bit(budgets: tuple[int | None, ...], trained: Trainer, tmp_path: Path) -> None:
    whole = trained.evaluate(Request(CARD), Context(0, tmp_path / "whole"))
    *_, last = stages(Staged(trained), tmp_path / "staged", *budgets)
    assert last.metrics == whole.metrics
    assert weights(tmp_path / "staged", last) == weights(tmp_path / "whole", whole)


def test_what_is_spent_are_the_steps_since_the_stage_before(tmp_path: Path) -> None:
    found = stages(Staged(trainer()), tmp_path, 3, 8, 12, 12)
    assert [one.spent.steps for one in found] == [3, 5, 4, 0]
    assert sum(one.spent.macs for one in found) == trainer().evaluate(Request(CARD), Context()).spent.macs


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
    whole = trainer().evaluate(Request(CARD), Context())
    assert (last.metrics, last.spent.steps) == (whole.metrics, 12)


def test_without_a_folder_there_are_no_stages() -> None:
    with pytest.raises(IllegalInput, match="folder"):
        Staged(trainer()).evaluate(Request(CARD, Budget(3)), Context())


@pytest.mark.parametrize("steps", [0, 13])
def test_a_budget_outside_the_recipe_is_refused(steps: int, tmp_path: Path) -> None:
    with pytest.raises(IllegalInput, match=rf"1 to 12 steps.*{steps}"):
        stages(Staged(trainer()), tmp_path, steps)
    assert not list(tmp_path.iterdir())
