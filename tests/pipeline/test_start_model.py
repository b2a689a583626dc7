"""Pretrained models that are read for a task or refused, which head is kept, and teachers that are too weak."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.cli.training import ENCODER
from tests.evaluate.toy import SCORED, TASK, rows
from tests.pipeline.compressions import BERT, LENGTH, VIT, bert, tokeniser, vit
from tests.train.cases import SPANS, few

from formwright.arch.card import Card
from formwright.arch.heads import HeadSpec
from formwright.arch.layers import Block, Stack
from formwright.arch.ops import Attention
from formwright.core.errors import IllegalInput, MissingExtra
from formwright.core.rng import derive
from formwright.evaluate.evaluation_file import evidence_of
from formwright.nn.build import build
from formwright.nn.hf.imported import Imported
from formwright.nn.hf.load import from_hf
from formwright.nn.hf.save import save_pretrained_folder
from formwright.nn.settings import Settings
from formwright.nn.task_model import TaskModel
from formwright.pipeline import start_model as module
from formwright.pipeline.fine_tune import read_teacher_model as read_model
from formwright.pipeline.start_model import StartModel
from formwright.pipeline.start_model import read_pretrained as begin
from formwright.pipeline.task_models import Weakness, find_weakness, save_task_model
from formwright.tasks.corpora import PYDOC_MASKED
from formwright.tasks.pictures import PictureReader
from formwright.tasks.rows import ImageRows, Splits
from formwright.tasks.task import Task
from formwright.train import judge as judging
from formwright.train.fit import Training, fresh_model, task_model
from formwright.train.hyperparameters import Hyperparameters
from formwright.train.judge import judge
from formwright.train.prepare import prepare

TWO = HeadSpec("sequence-classification", 2)
EACH = [TASK, SCORED, SPANS]
_PIXELS = ImageRows(np.zeros((4, 1, 8, 8), np.float32), np.array([0, 1, 0, 1]))
IMAGES = Task("pictures", "image-classification", "accuracy", lambda: Splits(_PIXELS, _PIXELS, None), labels=("a", "b"))


def change(folder: Path, **fields: Any) -> Path:
    """Change what the configuration of a model says."""
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | fields), encoding="utf-8")
    return folder


@pytest.mark.parametrize("task", EACH, ids=lambda task: task.kind)
def test_a_plain_model_is_read_for_a_task_and_saved_as_it_was(task: Task, tmp_path: Path) -> None:
    begun = begin(str(bert(tmp_path)), task, LENGTH)
    assert (begun.name, begun.card, begun.is_finetuned) == ("bert", BERT, False)
    assert begun.prepared.task is task
    assert begun.prepared.text_tokeniser.size == tokeniser().size
    assert begun.prepared.length == LENGTH
    model = task_model(begun.imported, begun.prepared, Training(Hyperparameters(1)))
    for _ in range(2):  # a stage that was cut short writes its model again
        save_task_model(model, begun.prepared, tmp_path / "saved", {"fine-tuned from": "bert"})
    again = read_model(tmp_path / "saved")
    assert again.spec.task == model.spec.task
    before = model.state_dict()
    assert all(tensor.equal(before[name]) for name, tensor in again.state_dict().items())
    scores = judge(model, begun.prepared, begun.prepared.validation)
    readme = (tmp_path / "saved" / "README.md").read_text(encoding="utf-8")
    for words in (f"{task.name} validation {task.metric}", f"{scores[task.metric]:.4g}"[:5], "fine-tuned from"):
        assert words in readme
    assert not task.labels or from_hf(tmp_path / "saved").labels == task.labels
    assert begin(str(tmp_path / "saved"), task, LENGTH).is_finetuned


def test_models_and_rows_are_read_for_what_they_are(tmp_path: Path) -> None:
    begun = begin(str(vit(tmp_path)), IMAGES, LENGTH)
    assert (begun.card, begun.prepared.tokeniser) == (VIT, PictureReader(8, 1, squeeze=True))
    assert begun.digests()["tokeniser"] == PictureReader(8, 1, squeeze=True).digest is not None
    assert begin(str(bert(tmp_path)), TASK, 1000).prepared.length == 32
    assert begin(str(bert(tmp_path, "same", TWO, labels=TASK.labels)), TASK, LENGTH).is_finetuned
    assert not begin(str(bert(tmp_path, "other", TWO, labels=("a", "b"))), TASK, LENGTH).is_finetuned


def test_a_head_of_another_purpose_is_left_out(tmp_path: Path) -> None:
    folder = change(bert(tmp_path), architectures=["BertForMultipleChoice"])
    begun = begin(str(folder), TASK, LENGTH)
    assert begun.imported.head is None
    assert not begun.is_finetuned


def test_the_digests_tell_what_has_changed(tmp_path: Path) -> None:
    folder = bert(tmp_path)
    before = begin(str(folder), TASK, LENGTH).digests()
    assert begin(str(folder), TASK, LENGTH).digests() == before
    weights = load_file(folder / "model.safetensors")
    weights["embeddings.LayerNorm.weight"] += 1
    save_file(weights, folder / "model.safetensors")
    other = replace(TASK, labels=("no", "yes"), splits=lambda: Splits(rows(1), rows(0), None))
    after = begin(str(folder), other, LENGTH).digests()
    assert {name for name in before if before[name] != after[name]} == {
        "weights",
        "training rows",
        "validation rows",
        "test rows",
        "labels",
    }


def test_without_a_model_the_demonstration_must_be_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_DEMO", "no_such_package")
    with pytest.raises(MissingExtra, match="demo"):
        begin("", TASK, LENGTH)


@pytest.mark.slow
def test_without_a_model_it_is_minilm() -> None:
    begun = begin("", TASK, LENGTH)
    assert (begun.name, begun.card.output_width, begun.is_finetuned) == ("MiniLM", 384, False)


def one_class() -> Splits[Any]:
    whole = rows(0)
    return Splits(replace(whole, labels=(0,) * len(whole)), replace(rows(1), labels=(0,) * len(rows(1))), None)


@pytest.mark.parametrize(
    ("task", "told"),
    [
        (few("pydoc/causal", 16), "causal-lm needs a design of family decoder; this card is of family encoder"),
        (Task("dull", "sequence-classification", "accuracy", one_class, labels=("yes",)), r"dull has 1 class \(yes\)"),
        (IMAGES, "pictures has images, but this card reads text"),
    ],
)
def test_tasks_that_no_model_can_be_compressed_for_are_refused(task: Task, told: str, tmp_path: Path) -> None:
    with pytest.raises(IllegalInput, match=told):
        begin(str(bert(tmp_path)), task, LENGTH)


@pytest.mark.parametrize("number", [torch.nan, torch.inf])
def test_weights_that_are_no_numbers_are_refused(number: float, tmp_path: Path) -> None:
    folder = bert(tmp_path)
    weights = load_file(folder / "model.safetensors")
    name = next(name for name in weights if name.endswith("layer.1.output.dense.weight"))
    weights[name][3, 5] = number
    save_file(weights, folder / "model.safetensors")
    told = r"the weights in .*bert contain NaN or infinity: 1 tensors, the first being .*layers\.1.*fetch it again"
    with pytest.raises(IllegalInput, match=told):
        begin(str(folder), TASK, LENGTH)


def test_a_tokeniser_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    folder = bert(tmp_path)
    content = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    content["model"]["vocab"]["zebra"] = 200
    (folder / "tokenizer.json").write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(IllegalInput, match="does not fit the model: it has 201 tokens, and the model knows 80"):
        begin(str(folder), TASK, LENGTH)


@pytest.mark.parametrize("key", ["pad_token_id", "cls_token_id", "sep_token_id"])
def test_a_tokeniser_that_numbers_special_tokens_otherwise_is_refused(key: str, tmp_path: Path) -> None:
    folder = bert(tmp_path)
    own = tokeniser().special
    wanted = {"pad_token_id": own.pad, "cls_token_id": own.begin, "sep_token_id": own.separator}[key]
    assert begin(str(change(folder, **{key: wanted})), TASK, LENGTH).name == "bert"
    assert begin(str(change(folder, **{key: None})), TASK, LENGTH).name == "bert"
    with pytest.raises(
        IllegalInput, match=f"does not fit the model: config.json has {key} 77, and the tokeniser {wanted}"
    ):
        begin(str(change(folder, **{key: 77})), TASK, LENGTH)


def test_models_that_cannot_begin_are_refused(tmp_path: Path) -> None:
    with pytest.raises(IllegalInput, match=r"gpt2.*bert"):
        begin(str(change(bert(tmp_path), model_type="gpt2")), TASK, LENGTH)
    with pytest.raises(IllegalInput, match=r"holds neither tokenizer\.json nor vocab\.txt, so there is no tokeniser"):
        begin(str(bert(tmp_path, "bare", tokenizer=None)), TASK, LENGTH)
    assert BERT.encoder is not None
    card = Card(decoder=Stack(BERT.encoder.embedding, (Block(16, Attention(2, 8), (32,)),), causal=True))
    save_pretrained_folder(build(card), tmp_path / "decoder", tokenizer=tokeniser().tokenizer)
    with pytest.raises(IllegalInput, match=r"sequence-classification .* family decoder"):
        begin(str(tmp_path / "decoder"), TASK, LENGTH)
    with pytest.raises(IllegalInput, match=r"is not a folder; name the folder that holds config\.json"):
        begin(str(tmp_path / "absent"), TASK, LENGTH)
    # though the task has two
    task = replace(TASK, splits=one_class)
    with pytest.raises(IllegalInput, match=r"rows of .* that are trained on are all of one class \(\w+\).*more rows"):
        begin(str(bert(tmp_path, "whole")), task, LENGTH)


def test_a_multi_label_model_is_refused_for_a_task_with_one_answer(tmp_path: Path) -> None:
    folder = bert(tmp_path, "several", HeadSpec("sequence-classification", 2), labels=("a", "b"))
    change(folder, problem_type="multi_label_classification")
    with pytest.raises(IllegalInput, match="multi-label") as caught:
        begin(str(folder), TASK, LENGTH)
    assert str(folder) in str(caught.value)


def test_a_head_that_is_replaced_is_told(tmp_path: Path) -> None:
    plain = begin(str(bert(tmp_path, "plain")), TASK, LENGTH)
    assert plain.replaced == ""
    tokens = begin(str(bert(tmp_path, "tokens", HeadSpec("token-classification", 3))), TASK, LENGTH)
    assert "the head of tokens is replaced" in tokens.replaced
    assert "token-classification" in tokens.replaced
    spans = begin(str(bert(tmp_path, "spans", HeadSpec("span-extraction"))), TASK, LENGTH)
    assert "the head of spans is replaced" in spans.replaced
    more = begin(
        str(bert(tmp_path, "more", HeadSpec("sequence-classification", 3), labels=("x", "y", "z"))), TASK, LENGTH
    )
    assert "x, y, z" in more.replaced
    same = begin(str(bert(tmp_path, "same", HeadSpec("sequence-classification", 2), labels=TASK.labels)), TASK, LENGTH)
    assert same.is_finetuned
    assert same.replaced == ""


def test_a_model_without_a_head_is_refused(tmp_path: Path) -> None:
    save_pretrained_folder(build(begin(str(bert(tmp_path)), TASK, LENGTH).card), tmp_path / "bare")
    with pytest.raises(IllegalInput, match=r"bare: it has no task head"):
        read_model(tmp_path / "bare")


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json"])
def test_a_damaged_model_is_refused_with_the_way_out(name: str, tmp_path: Path) -> None:
    begun = begin(str(bert(tmp_path)), TASK, LENGTH)
    folder = tmp_path / "saved"
    save_task_model(
        task_model(begun.imported, begun.prepared, Training(Hyperparameters(1))), begun.prepared, folder, {}
    )
    content = (folder / name).read_bytes()
    for damaged in (content[: len(content) // 2], b"{}"):
        (folder / name).write_bytes(damaged)
        with pytest.raises(IllegalInput, match=r"cannot read .*saved: .*; remove the folder"):
            read_model(folder)


TRAINING = Training(Hyperparameters(1), length=16)


@pytest.mark.parametrize(
    ("task", "spec", "labels", "fits"),
    [
        (TASK, HeadSpec("sequence-classification", 2), ("absent", "present"), True),
        (TASK, HeadSpec("sequence-classification", 2), (), True),
        (TASK, HeadSpec("sequence-classification", 2), ("present", "absent"), False),
        (TASK, HeadSpec("sequence-classification", 3), ("a", "b", "c"), False),
        (TASK, HeadSpec("token-classification", 2), ("absent", "present"), False),
        (TASK, None, (), False),
        (SCORED, HeadSpec("sequence-classification", 1), ("LABEL_0",), True),
        (SCORED, HeadSpec("sequence-classification", 2), ("no", "yes"), False),
        (PYDOC_MASKED, HeadSpec("masked-lm", 2), (), True),
        (PYDOC_MASKED, HeadSpec("sequence-classification", 2), (), False),
    ],
    ids=str,
)
def test_the_head_is_kept_where_it_answers_the_very_question(
    task: Task, spec: HeadSpec | None, labels: tuple[str, ...], fits: bool
) -> None:
    model = build(ENCODER, head=spec, seed=7, spread="width")
    imported = Imported(ENCODER, Settings(), model.state_dict(), spec, labels)
    prepared = prepare(task, ENCODER, 16)
    start = StartModel("mine", ENCODER, task, prepared.tokeniser, Settings(), imported)
    assert start.prepared(16) is prepared
    found = start.model(prepared, TRAINING).state_dict()
    fresh = fresh_model(ENCODER, prepared, TRAINING).state_dict()
    given = (
        model.state_dict()
        if isinstance(model, TaskModel)
        else {f"transformer.{k}": v for k, v in model.state_dict().items()}
    )
    for name, tensor in found.items():
        source = given if fits or name.startswith("transformer.") else fresh
        assert tensor.equal(source[name]), name
    assert not found["transformer.encoder.embedding.tokens.weight"].equal(
        fresh["transformer.encoder.embedding.tokens.weight"]
    )


def test_pretrained_weights_go_below_a_fresh_head() -> None:
    start = StartModel("mine", ENCODER, TASK, None, Settings())
    assert start.from_scratch
    assert not replace(start, imported=Imported(ENCODER, Settings(), {})).from_scratch
    weights = build(ENCODER, seed=9).state_dict()
    found = start.model(start.prepared(16), TRAINING, weights).state_dict()
    fresh = start.model(start.prepared(16), TRAINING).state_dict()
    for name, tensor in found.items():
        source = weights[name.removeprefix("transformer.")] if name.startswith("transformer.") else fresh[name]
        assert tensor.equal(source), name


Weak = Callable[..., Weakness | None]


@pytest.fixture
def weak(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Weak:
    """Give a function that judges answers to so many rows of which some have the label 1."""
    prepared = begin(str(bert(tmp_path)), TASK, LENGTH).prepared

    def call(found: Any, truth: Any, metric: str = "accuracy", kind: str = "sequence-classification") -> Any:
        pairs = {metric: (np.asarray(found), np.asarray(truth))}
        judged = judging._judged(pairs)
        monkeypatch.setattr(judging, "truths", lambda _: np.asarray(truth))
        task = replace(prepared.task, metric=metric, metrics=(metric,), kind=kind)
        read = replace(prepared, task=task)
        return find_weakness(read, judged.metrics, evidence_of(judged.metrics, judged.tables, read, read.validation))

    return call


def answers(number: int, ones: float, right: float) -> tuple[Any, Any]:
    """Give answers of which a share is right, to rows of which a share has the label 1."""
    truth = (np.arange(number) < ones * number).astype(int)
    wrong = derive(0).permutation(number) >= right * number
    return np.where(wrong, 1 - truth, truth), truth


def test_a_teacher_near_chance_or_proved_by_few_rows_is_weak(weak: Weak) -> None:
    """0.585 on 8,000 pairs, of which 0.486 is chance: told apart, and yet near it."""
    found = weak(*answers(8000, 0.486, 0.585))
    assert found is not None
    assert found.told_apart
    assert found.score == pytest.approx(0.585, abs=0.002)
    assert found.constant == pytest.approx(0.514, abs=0.002)
    assert "0.58" in str(found)
    assert "always answering" in found.answer
    found = weak(np.ones(500, int), answers(500, 0.7, 1.0)[1])
    assert found is not None
    assert not found.told_apart
    found = weak(*answers(10, 0.5, 0.7))  # two fifths of what is possible, which may be chance
    assert found is not None
    assert not found.told_apart
    assert weak(*answers(10, 0.5, 1.0)) is None
    assert weak(*answers(1000, 0.9, 0.91)) is not None
    assert weak(*answers(1000, 0.5, 0.91)) is None
    truth = np.linspace(0, 5, 200)
    noise = np.where(np.arange(200) % 2, 1.0, -1.0)
    assert weak(truth + noise, truth, "pearson", "regression") is None
    assert weak(noise, truth, "pearson", "regression") is not None


@pytest.mark.parametrize("metric", ["accuracy", "matthews", "f1"])
def test_a_good_teacher_is_not_weak(weak: Weak, metric: str) -> None:
    assert weak(*answers(1000, 0.5, 0.9), metric) is None
