"""Starting from a relative's weights."""

from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from tests.evaluate.toy import SCORED, TABLE, TASK, WORDS, card, finished, history, rows, trainer

from formwright.arch.card import Card
from formwright.arch.heads import HeadSpec
from formwright.arch.layers import Block, Stack
from formwright.arch.ops import Attention
from formwright.core.errors import EvaluationFailed, IllegalInput
from formwright.core.records import Observation, Request, Trial
from formwright.evaluate.context import Context
from formwright.evaluate.inherited import (
    LOST,
    PRETRAINED,
    Inherited,
    Pretrained,
    Pretraining,
    WeightsLost,
    require_text_task,
)
from formwright.evaluate.training import WEIGHTS, training_macs
from formwright.nn.build import build
from formwright.tasks import load_task
from formwright.tasks.rows import PlainText
from formwright.train.fit import Training
from formwright.train.hyperparameters import Hyperparameters
from formwright.train.loop import Paused
from formwright.train.prepare import prepare
from formwright.train.pretrain import plain_text, pretrain

# so small a rate that one step leaves every weight, to six digits, as it was
STILL: dict[str, Any] = {"steps": 1, "learning_rate": 1e-12, "weight_decay": 0.0}


def train(folder: Path, number: int, *widths: int, task: Any = TASK) -> Trial:
    """Train a design from scratch and keep its weights."""
    design = card(*widths)
    return finished(number, design, trainer(task=task).evaluate(Request(design), Context(number, folder)))


def tensors(folder: Path, found: Observation | None) -> dict[str, torch.Tensor]:
    return load_file(folder / found.artifacts[WEIGHTS])


def relative(inherited: Inherited, folder: Path, trials: list[Trial], *widths: int, parent: int | None = None) -> str:
    context = Context(0, folder, history(*trials))
    return inherited.evaluate(Request(card(*widths), parent=parent), context).artifacts.get("relative", "none")


def test_training_begins_with_the_relatives_weights_where_both_are_identical(tmp_path: Path) -> None:
    old = train(tmp_path, 7, 32, 32, 32, 32)
    evaluator = Inherited(trainer(**STILL), least=0.75)
    found = evaluator.evaluate(Request(card(32, 32, 32, 48)), Context(0, tmp_path, history(old)))
    fresh = trainer(**STILL).evaluate(Request(card(32, 32, 32, 48)), Context(0, tmp_path / "fresh"))
    theirs, own, other = (
        tensors(tmp_path, old.observation),
        tensors(tmp_path, found),
        tensors(tmp_path / "fresh", fresh),
    )
    assert found.artifacts["relative"] == "7"
    for name, tensor in own.items():
        shared = "embedding" in name or any(f".layers.{layer}." in name for layer in range(3))
        source = theirs[name] if shared else other[name]
        assert torch.allclose(tensor, source, atol=1e-6), name
    # and the two sources differ, so the comparison means something
    assert not torch.allclose(
        theirs["transformer.encoder.embedding.tokens.weight"], other["transformer.encoder.embedding.tokens.weight"]
    )


def test_slices_are_carried_by_the_other_rule(tmp_path: Path) -> None:
    old = train(tmp_path, 0, 32, 32)
    found = Inherited(trainer(**STILL), 0.5, "slice").evaluate(
        Request(card(32, 16)), Context(1, tmp_path, history(old))
    )
    own, theirs = tensors(tmp_path, found), tensors(tmp_path, old.observation)
    wider = [name for name in own if own[name].shape != theirs[name].shape]
    assert wider
    for name in own:
        cut = tuple(slice(0, size) for size in own[name].shape)
        assert torch.allclose(own[name], theirs[name][cut], atol=1e-6), name


def test_the_relative_with_most_overlap_gives_its_weights(tmp_path: Path) -> None:
    trials = [train(tmp_path, 0, 16, 32), train(tmp_path, 1, 32, 32, 16), train(tmp_path, 2, 32, 16)]
    assert relative(Inherited(trainer(**STILL), 0.3), tmp_path, trials, 32, 32, 32) == "1"


def test_of_equals_the_parent_and_then_the_latest_gives_its_weights(tmp_path: Path) -> None:
    trials = [train(tmp_path, number, 32, width) for number, width in enumerate((16, 24, 48))]
    evaluator = Inherited(trainer(**STILL), 0.5)
    assert relative(evaluator, tmp_path, trials, 32, 32) == "2"
    assert relative(evaluator, tmp_path, trials, 32, 32, parent=1) == "1"
    assert relative(evaluator, tmp_path, trials, 32, 32, parent=9) == "2"


def last_width(card: Card) -> int:
    last = card.encoder.layers[-1]
    return last.feed_forward[0]


def difference(card: Card, other: Card) -> float:
    """Count how much wider one last layer is than the other, and nothing beyond 16 as near."""
    found = abs(last_width(card) - last_width(other))
    return found if found <= 16 else inf


def test_of_equals_the_nearest_gives_its_weights_where_a_distance_is_given(tmp_path: Path) -> None:
    trials = [train(tmp_path, number, 32, width) for number, width in enumerate((24, 16, 48))]
    evaluator = Inherited(trainer(**STILL), 0.5, distance=difference)
    assert relative(evaluator, tmp_path, trials, 32, 32) == "0"
    assert relative(evaluator, tmp_path, trials, 32, 32, parent=2) == "0"
    # of equally near ones the parent, then the latest
    assert relative(evaluator, tmp_path, trials[1:], 32, 32) == "2"
    assert relative(evaluator, tmp_path, trials[1:], 32, 32, parent=1) == "1"


def test_a_larger_share_comes_before_a_smaller_distance(tmp_path: Path) -> None:
    trials = [train(tmp_path, 0, 32, 32, 48), train(tmp_path, 1, 32, 16, 32)]
    evaluator = Inherited(trainer(**STILL), 0.3, distance=difference)
    assert relative(evaluator, tmp_path, trials, 32, 32, 32) == "0"


def test_trials_infinitely_far_are_no_relatives(tmp_path: Path) -> None:
    trials = [train(tmp_path, 0, 32, 32, 64), train(tmp_path, 1, 32, 16, 32)]
    near = Inherited(trainer(**STILL), 0.3, distance=difference)
    assert relative(near, tmp_path, trials, 32, 32, 32) == "1"
    assert relative(near, tmp_path, trials[:1], 32, 32, 32) == "none"


def test_the_distance_is_that_of_the_new_design_to_the_old(tmp_path: Path) -> None:
    asked: list[tuple[int, int]] = []

    def distance(card: Card, other: Card) -> float:
        asked.append((last_width(card), last_width(other)))
        return 0.0

    trials = [train(tmp_path, 0, 32, 16), train(tmp_path, 1, 16, 48)]
    relative(Inherited(trainer(**STILL), 0.5, distance=distance), tmp_path, trials, 32, 32)
    assert asked == [(32, 16)]  # of the other one too little is shared for its distance to matter


def test_below_the_least_share_training_starts_fresh(tmp_path: Path) -> None:
    trials = [train(tmp_path, 0, 32, 16)]
    request, context = Request(card(32, 32)), Context(0, tmp_path, history(*trials))
    found = Inherited(trainer(), 0.51).evaluate(request, context)
    assert "relative" not in found.artifacts
    fresh = trainer().evaluate(request, Context(0, tmp_path / "fresh"))
    assert found.metrics == fresh.metrics
    assert torch.equal(
        tensors(tmp_path, found)["head.output.weight"], tensors(tmp_path / "fresh", fresh)["head.output.weight"]
    )


def test_the_share_is_that_of_the_new_designs_layers(tmp_path: Path) -> None:
    shallow = [train(tmp_path, 0, 32)]
    assert relative(Inherited(trainer(**STILL), 0.5), tmp_path, shallow, 32, 32, 32) == "none"
    assert relative(Inherited(trainer(**STILL), 0.3), tmp_path, shallow, 32, 32, 32) == "0"


def test_only_finished_trials_that_kept_their_weights_count(tmp_path: Path) -> None:
    design = card(32, 32)
    kept = Observation({"accuracy": 0.5}, artifacts={WEIGHTS: "absent"})
    others = [
        finished(0, design, Observation({"accuracy": 0.5})),
        Trial(1, Request(design)),
        Trial(2, Request(design), "failed", reason="diverged"),
    ]
    assert relative(Inherited(trainer(**STILL)), tmp_path, others, 32, 32) == "none"
    without_folder = Context(0, None, history(finished(3, design, kept)))
    assert Inherited(trainer(**STILL)).evaluate(Request(design), without_folder).artifacts == {}


@pytest.mark.parametrize("damage", ["gone", "cut short", "emptied", "a folder"])
def test_weights_that_cannot_be_read_fail_the_evaluation(damage: str, tmp_path: Path) -> None:
    old = train(tmp_path, 4, 32, 32)
    path = tmp_path / old.observation.artifacts[WEIGHTS]
    content = path.read_bytes()
    path.unlink()
    if damage == "a folder":
        path.mkdir()
    elif damage != "gone":
        path.write_bytes(content[:200] if damage == "cut short" else b"")
    with pytest.raises(EvaluationFailed, match=r"cannot inherit from trial 4: .*safetensors"):
        relative(Inherited(trainer(**STILL)), tmp_path, [old], 32, 32)


def test_a_trial_that_has_nothing_to_give_is_no_relative(tmp_path: Path) -> None:
    trials = [train(tmp_path, 0, 32, 32)]
    wider = Card(encoder=Stack(replace(TABLE, width=32), (Block(32, Attention(2, 16), (32,)),)))
    request, context = Request(wider), Context(0, tmp_path, history(*trials))
    assert "relative" not in Inherited(trainer(**STILL), 0).evaluate(request, context).artifacts
    # an embedding is something to give
    assert relative(Inherited(trainer(**STILL), 0), tmp_path, trials, 16, 16) == "0"


def test_it_is_deterministic(tmp_path: Path) -> None:
    old = train(tmp_path, 0, 32, 32)
    context = Context(1, tmp_path, history(old))
    found = [Inherited(trainer(), 0.5).evaluate(Request(card(32, 16)), context) for _ in range(2)]
    assert found[0].metrics == found[1].metrics
    assert found[0].artifacts == found[1].artifacts


def test_a_fresh_head_of_a_regression_begins_with_the_mean(tmp_path: Path) -> None:
    old = train(tmp_path, 0, 32, 32, task=SCORED)
    evaluator = Inherited(trainer(task=SCORED, **STILL), 0.5)
    found = evaluator.evaluate(Request(card(32, 16)), Context(0, tmp_path, history(old)))
    labels = prepare(SCORED, card(32, 16), 12).train.rows.labels  # type: ignore[union-attr]
    bias = float(tensors(tmp_path, found)["head.output.bias"])
    assert bias == pytest.approx(sum(labels) / len(labels), abs=1e-5)
    assert bias > 3


@pytest.mark.parametrize("least", [-0.1, 1.1, float("nan")])
def test_a_share_that_is_none_is_refused(least: float) -> None:
    with pytest.raises(IllegalInput, match="a share from 0 to 1"):
        Inherited(trainer(), least)


def test_weights_with_a_flipped_bit_are_not_inherited(tmp_path: Path) -> None:
    old = train(tmp_path, 3, 32, 32)
    path = tmp_path / old.observation.artifacts[WEIGHTS]
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)
    with pytest.raises(WeightsLost, match="SHA-256") as found:
        relative(Inherited(trainer(**STILL)), tmp_path, [old], 32, 32)
    assert found.value.number == 3


STEPS = 4


def pretraining(text: PlainText | None = None, **recipe: Any) -> Pretraining:
    settings = {"learning_rate": 3e-3, **recipe}
    return Pretraining(Training(Hyperparameters(STEPS, 16, **settings), length=12, device="cpu"), text)


def evaluator(least: float = 0.8, text: PlainText | None = None, **recipe: Any) -> Pretrained:
    return Pretrained(Inherited(trainer(**recipe), least), pretraining(text))


def expected(design: Card, seed: int, text: PlainText | None = None) -> dict[str, torch.Tensor]:
    """Pretrain a design by hand."""
    prepared = prepare(TASK, design, 12)
    own = Training(Hyperparameters(STEPS, 16, learning_rate=3e-3, seed=seed), length=12, device="cpu")
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
    fresh = trainer(**STILL).evaluate(Request(design), Context(3, tmp_path / "fresh"))
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
    alone = trainer(steps=6).evaluate(Request(design), Context(0, tmp_path))
    assert found.spent.steps == alone.spent.steps + STEPS == 6 + STEPS
    # the text of the toy task is its rows, each once, and no two of them are equal
    same = training_macs(design, prepare(TASK, design, 12), Training(Hyperparameters(STEPS, 16), length=12), STEPS)
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
    require_text_task(load_task(name))
