from dataclasses import asdict, replace
from pathlib import Path

import pytest
import torch
from tests.train.toy import CARD, Toy, model
from torch import nn

from formwright.arch.card import Card
from formwright.arch.layers import Stack
from formwright.core.errors import IllegalInput
from formwright.nn.build import build
from formwright.nn.heads import HeadSpec
from formwright.train import checkpoint
from formwright.train.checkpoint import Checkpoint
from formwright.train.loop import Saving, train
from formwright.train.losses import loss_of
from formwright.train.recipe import Recipe
from formwright.train.state import State

RECIPE = Recipe(steps=6, batch=16)
LOSS = loss_of("sequence-classification")


def state(net: nn.Module, recipe: Recipe = RECIPE) -> State:
    return State(net, torch.optim.AdamW(net.parameters(), fused=True), recipe)


def trained(folder: Path, net: nn.Module | None = None) -> Checkpoint:
    train(net or model(), Toy(), LOSS, RECIPE, Saving(folder), until=3)
    found = checkpoint.newest(folder)
    assert found is not None
    return found


def deeper(layers: int) -> nn.Module:
    assert CARD.encoder is not None
    card = Card(encoder=Stack(CARD.encoder.embedding, CARD.encoder.layers * layers))
    return build(card, head=HeadSpec("sequence-classification", 2))


def test_what_a_checkpoint_holds_comes_back(tmp_path: Path) -> None:
    before = state(model())
    before.restore(trained(tmp_path))
    before.judged = [(1, 0.1), (3, 1 / 3)]
    before.best = {"head.output.bias": torch.tensor([1.5, -2.0])}
    before.seconds = 2.5
    checkpoint.write(tmp_path / "changed", before.checkpoint())
    found = checkpoint.newest(tmp_path / "changed")
    assert found is not None
    after = state(model(seed=5))
    after.restore(found)
    assert after.losses == before.losses
    assert after.judged == before.judged
    assert (after.seconds, after.saved) == (2.5, 3)
    assert torch.equal(after.best["head.output.bias"], before.best["head.output.bias"])
    for one, other in zip(before.parameters, after.parameters, strict=True):
        assert torch.equal(one, other)
        moments, others = before.optimiser.state[one], after.optimiser.state[other]
        assert moments.keys() == others.keys() == {"step", "exp_avg", "exp_avg_sq"}
        assert all(torch.equal(moments[key], others[key]) for key in moments)
        assert all(moment.device == other.device for moment in others.values())


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"learning_rate": 0.5}, "learning_rate 0.001"),
        ({"seed": 4}, "seed 0"),
        ({"batch": 8, "steps": 60}, "steps 6, batch 16"),
    ],
)
def test_another_recipe_is_refused(tmp_path: Path, change: dict[str, float], told: str) -> None:
    with pytest.raises(IllegalInput, match=f"step 3 was trained with {told}; give the same, or begin anew"):
        state(model(), replace(RECIPE, **change)).restore(trained(tmp_path))  # type: ignore[arg-type]


def test_a_recipe_of_other_settings_is_refused(tmp_path: Path) -> None:
    found = trained(tmp_path)
    recipe = asdict(RECIPE)
    del recipe["beta2"]
    with pytest.raises(IllegalInput, match=r"trained with no beta2, momentum 0\.9"):
        state(model()).restore(replace(found, facts={**found.facts, "recipe": recipe | {"momentum": 0.9}}))


@pytest.mark.parametrize(("saved", "resumed"), [(1, 2), (2, 1)])
def test_another_depth_is_refused(tmp_path: Path, saved: int, resumed: int) -> None:
    with pytest.raises(
        IllegalInput, match=r"of another model: model\.transformer\.encoder\.layers\.1\..* does not fit"
    ):
        state(deeper(resumed)).restore(trained(tmp_path, deeper(saved)))


def test_other_shapes_are_refused_and_nothing_is_half_restored(tmp_path: Path) -> None:
    other = build(CARD, head=HeadSpec("sequence-classification", 3))
    before = [parameter.clone() for parameter in other.parameters()]
    with pytest.raises(IllegalInput, match=r"of another model: model\.head\.output\.bias does not fit"):
        state(other).restore(trained(tmp_path))
    assert all(torch.equal(one, two) for one, two in zip(before, other.parameters(), strict=True))
