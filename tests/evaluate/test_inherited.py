"""Starting from a relative's weights."""

from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from tests.evaluate.toy import SCORED, TABLE, TASK, card, finished, history, trainer

from formwright.arch.card import Card
from formwright.arch.layers import Block, Stack
from formwright.arch.ops import Attention
from formwright.core.errors import EvaluationFailed, IllegalInput
from formwright.core.records import Observation, Request, Trial
from formwright.evaluate.context import Context
from formwright.evaluate.full import Full
from formwright.evaluate.inherited import Inherited, WeightsLost
from formwright.evaluate.training import WEIGHTS
from formwright.train.prepare import prepare

# so small a rate that one step leaves every weight, to six digits, as it was
STILL: dict[str, Any] = {"steps": 1, "learning_rate": 1e-12, "weight_decay": 0.0}


def train(folder: Path, number: int, *widths: int, task: Any = TASK) -> Trial:
    """Train a design from scratch and keep its weights."""
    design = card(*widths)
    return finished(number, design, Full(trainer(task=task)).evaluate(Request(design), Context(number, folder)))


def tensors(folder: Path, found: Observation | None) -> dict[str, torch.Tensor]:
    assert found is not None
    return load_file(folder / found.artifacts[WEIGHTS])


def relative(inherited: Inherited, folder: Path, trials: list[Trial], *widths: int, parent: int | None = None) -> str:
    context = Context(0, folder, history(*trials))
    return inherited.evaluate(Request(card(*widths), parent=parent), context).artifacts.get("relative", "none")


def test_training_begins_with_the_relatives_weights_where_both_are_identical(tmp_path: Path) -> None:
    old = train(tmp_path, 7, 32, 32, 32, 32)
    evaluator = Inherited(trainer(**STILL), least=0.75)
    found = evaluator.evaluate(Request(card(32, 32, 32, 48)), Context(0, tmp_path, history(old)))
    fresh = Full(trainer(**STILL)).evaluate(Request(card(32, 32, 32, 48)), Context(0, tmp_path / "fresh"))
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
    assert card.encoder is not None
    last = card.encoder.layers[-1]
    assert isinstance(last, Block)
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
    fresh = Full(trainer()).evaluate(request, Context(0, tmp_path / "fresh"))
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
    assert old.observation is not None
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
    assert old.observation is not None
    path = tmp_path / old.observation.artifacts[WEIGHTS]
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)
    with pytest.raises(WeightsLost, match="SHA-256") as found:
        relative(Inherited(trainer(**STILL)), tmp_path, [old], 32, 32)
    assert found.value.number == 3
