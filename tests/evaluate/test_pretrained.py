"""Fine-tuning after pretraining, or from a relative's weights."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from tests.evaluate.toy import TASK, WORDS, card, finished, history, rows, trainer

from formwright.arch.card import Card
from formwright.core.errors import EvaluationFailed, IllegalInput
from formwright.core.records import Observation, Request
from formwright.evaluate.context import Context
from formwright.evaluate.full import Full
from formwright.evaluate.inherited import Inherited
from formwright.evaluate.pretrained import LOST, PRETRAINED, Pretrained, Pretraining, refuse_without_words
from formwright.evaluate.training import WEIGHTS, training_macs
from formwright.nn.build import build
from formwright.nn.heads import HeadSpec
from formwright.nn.task_model import TaskModel
from formwright.tasks import load_task
from formwright.tasks.rows import PlainText
from formwright.train.fit import Training
from formwright.train.loop import Paused
from formwright.train.prepare import prepare
from formwright.train.pretrain import plain_text, pretrain
from formwright.train.recipe import Recipe

STEPS = 4
# so small a rate that one step leaves every weight, to six digits, as it was
STILL: dict[str, Any] = {"steps": 1, "learning_rate": 1e-12, "weight_decay": 0.0}


def pretraining(text: PlainText | None = None, **recipe: Any) -> Pretraining:
    settings = {"learning_rate": 3e-3, **recipe}
    return Pretraining(Training(Recipe(STEPS, 16, **settings), length=12, device="cpu"), text)


def evaluator(least: float = 0.8, text: PlainText | None = None, **recipe: Any) -> Pretrained:
    return Pretrained(Inherited(trainer(**recipe), least), pretraining(text))


def tensors(folder: Path, found: Observation) -> dict[str, torch.Tensor]:
    return load_file(folder / found.artifacts[WEIGHTS])


def expected(design: Card, seed: int, text: PlainText | None = None) -> dict[str, torch.Tensor]:
    """Pretrain a design by hand."""
    prepared = prepare(TASK, design, 12)
    own = Training(Recipe(STEPS, 16, learning_rate=3e-3, seed=seed), length=12, device="cpu")
    weights, _ = pretrain(design, text or plain_text(rows(0)), prepared.text_tokeniser, own)
    return dict(weights)


@pytest.mark.parametrize("text", [None, PlainText((WORDS[:4] + " " + WORDS, "a b c d", "e f g h a"))])
def test_without_a_relative_a_card_is_pretrained_first(text: PlainText | None, tmp_path: Path) -> None:
    design = card(32, 16)
    found = evaluator(text=text, **STILL).evaluate(Request(design), Context(3, tmp_path))
    assert found.artifacts[PRETRAINED] == str(STEPS)
    assert "relative" not in found.artifacts
    own, pretrained = tensors(tmp_path, found), expected(design, 3, text)
    for name, tensor in pretrained.items():
        assert torch.allclose(own[f"transformer.{name}"], tensor, atol=1e-6), name
    fresh = Full(trainer(**STILL)).evaluate(Request(design), Context(3, tmp_path / "fresh"))
    assert not torch.allclose(
        own["transformer.encoder.embedding.tokens.weight"],
        tensors(tmp_path / "fresh", fresh)["transformer.encoder.embedding.tokens.weight"],
    )


def test_a_pretraining_with_a_folder_goes_on_where_it_was_left(tmp_path: Path) -> None:
    design, kept, told = card(32), replace(pretraining(), folder=tmp_path), list[int]()
    prepared = prepare(TASK, design, 12)

    def pause(step: int, _: float) -> None:
        if step == 1:
            raise Paused

    with pytest.raises(Paused):
        kept.learnt(design, prepared, 3, pause)
    found = kept.learnt(design, prepared, 3, lambda step, _: told.append(step))
    assert told == [2, 3]
    assert all(found[name].equal(tensor) for name, tensor in expected(design, 3).items())
    # another seed, design or beginning is another run
    kept.learnt(design, prepared, 4)
    kept.learnt(card(16), prepared, 3)
    model = build(design, head=HeadSpec("masked-lm"), seed=9)
    assert isinstance(model, TaskModel)
    kept.learnt(design, prepared, 3, model=model)
    assert len(list(tmp_path.iterdir())) == 4


def test_a_relative_spares_pretraining(tmp_path: Path) -> None:
    deep = evaluator().evaluate(Request(card(32, 16, 32, 32)), Context(0, tmp_path))
    trials = history(finished(0, card(32, 16, 32, 32), deep))
    found = evaluator(**STILL).evaluate(Request(card(32, 16)), Context(0, tmp_path, trials))
    assert found.artifacts["relative"] == "0"
    assert PRETRAINED not in found.artifacts
    theirs, own = tensors(tmp_path, deep), tensors(tmp_path, found)
    layer = [name for name in own if ".layers.1." in name]
    assert layer
    assert all(torch.allclose(own[name], theirs[name], atol=1e-6) for name in layer)
    assert found.spent.steps == 1


def test_a_relative_that_shares_too_little_does_not(tmp_path: Path) -> None:
    old = evaluator().evaluate(Request(card(32, 32, 32, 16)), Context(0, tmp_path))
    context = Context(0, tmp_path, history(finished(0, card(32, 32, 32, 16), old)))
    request = Request(card(32, 32, 32, 32))  # three layers of four
    assert PRETRAINED in evaluator(0.8).evaluate(request, context).artifacts
    assert evaluator(0.75).evaluate(request, context).artifacts["relative"] == "0"


@pytest.mark.parametrize("damage", ["gone", "cut short"])
def test_a_card_is_pretrained_where_the_weights_of_its_relative_are_lost(damage: str, tmp_path: Path) -> None:
    old = evaluator().evaluate(Request(card(32, 16, 32, 32)), Context(0, tmp_path))
    path = tmp_path / old.artifacts[WEIGHTS]
    path.unlink() if damage == "gone" else path.write_bytes(path.read_bytes()[:-100])
    context = Context(0, tmp_path, history(finished(7, card(32, 16, 32, 32), old)))
    found = evaluator(**STILL).evaluate(Request(card(32, 16)), context)
    assert (found.artifacts[PRETRAINED], found.artifacts[LOST]) == (str(STEPS), "7")
    assert "relative" not in found.artifacts
    alone = evaluator(**STILL).evaluate(Request(card(32, 16)), Context(0, tmp_path))
    assert (found.metrics, found.spent.steps) == (alone.metrics, alone.spent.steps)
    assert LOST not in alone.artifacts


def test_what_was_spent_is_the_sum_of_both(tmp_path: Path) -> None:
    design = card(32, 16)
    found = evaluator(steps=6).evaluate(Request(design), Context(0, tmp_path))
    alone = Full(trainer(steps=6)).evaluate(Request(design), Context(0, tmp_path))
    assert found.spent.steps == alone.spent.steps + STEPS == 6 + STEPS
    # the text of the toy task is its rows, each once, and no two of them are equal
    same = training_macs(design, prepare(TASK, design, 12), Training(Recipe(STEPS, 16), length=12), STEPS)
    assert found.spent.macs == alone.spent.macs + same
    assert found.spent.seconds > 0


def test_every_step_of_both_is_told() -> None:
    told: list[int] = []
    evaluator(steps=3).evaluate(Request(card(32)), Context(0, after_step=lambda step, _: told.append(step)))
    assert told == [*range(STEPS), *range(3)]


def test_it_is_deterministic_and_depends_on_the_seed(tmp_path: Path) -> None:
    found = [evaluator().evaluate(Request(card(32)), Context(seed, tmp_path / str(seed))) for seed in (0, 0, 1)]
    assert found[0].metrics == found[1].metrics
    first, _, other = (tensors(tmp_path / str(seed), one) for seed, one in zip((0, 0, 1), found, strict=True))
    assert not torch.equal(first["head.output.weight"], other["head.output.weight"])


def test_a_pretraining_that_diverges_fails_the_evaluation() -> None:
    broken = Pretrained(Inherited(trainer()), pretraining(learning_rate=1e30, clip=1e30))
    with pytest.raises(EvaluationFailed):
        broken.evaluate(Request(card(32)), Context(0))


@pytest.mark.parametrize("name", ["digits", "pydoc/causal", "translation"])
def test_tasks_without_words_to_fill_in_are_refused(name: str) -> None:
    with pytest.raises(IllegalInput, match=rf"designs for the task {name} .* cannot be pretrained"):
        Pretrained(Inherited(trainer(task=load_task(name))), pretraining())


@pytest.mark.parametrize("name", ["mini-glue/stsb", "pydoc/masked"])
def test_tasks_of_encoders_of_text_are_not(name: str) -> None:
    refuse_without_words(load_task(name))
