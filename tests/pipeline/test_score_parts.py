"""Parts of models that were trained from scratch: scored, put in order inside a super-network, and cut to a space."""

from pathlib import Path
from typing import Any

import pytest
import torch
from tests.pipeline.compressions import begun, made

from formwright.core.errors import IllegalInput
from formwright.cost import macs
from formwright.pipeline.draw_space import DrawSpace
from formwright.pipeline.pipeline import Pipeline
from formwright.pipeline.score_parts import Order, ScoreParts
from formwright.pipeline.task_choice import TaskChoice, TrainingChoice
from formwright.pipeline.train_shared import TrainShared
from formwright.supernet.importance import reordered
from formwright.supernet.lessons import Distil, Labels
from formwright.supernet.rules import Largest, Sandwich, Uniform

QUICK = TrainingChoice(batch=8, length=12, device="cpu", warmup=0.0)
FAMILIES = {
    "vision": ("autoformer-nano", "digits"),
    "decoder": ("gpt-nano", "pydoc/causal"),
    "encoder-decoder": ("hat-nano", "translation"),
}


def stages(family: str, order: Order = "first-order", hidden: bool = False) -> tuple[TrainShared, ScoreParts]:
    space, name = FAMILIES[family]
    largest = TrainShared(space, TaskChoice(name, rows=40), Largest(), Labels(), 2, training=QUICK)
    return largest, ScoreParts(largest, order, batches=2, hidden=hidden)


def ordered(family: str, drawn: bool, **options: Any) -> Pipeline:
    """Train all designs of a space, or of one that is drawn up, for a step that changes nothing."""
    largest, scores = stages(family, **options)
    space = DrawSpace(largest, scores, targets=("macs=75%",), configurations=3) if drawn else largest.space
    rule = Sandwich(1) if drawn else Uniform()
    shared = TrainShared(space, largest.task, rule, Distil(), 1, None, 1e-12, QUICK, largest, scores)
    return Pipeline(largest, scores, *([space] if isinstance(space, DrawSpace) else []), shared)


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_a_published_super_network_begins_with_an_ordered_model_that_was_trained_from_scratch(
    family: str, tmp_path: Path
) -> None:
    run = begun(ordered(family, drawn=False, hidden=family == "vision"), tmp_path / "out")
    shared = made(run, "super-network-2")
    teacher, scores = run.artifact(run.pipeline.named["super-network"]), run.artifact(run.pipeline.named["scores"])
    assert shared.card == teacher.card
    weights = dict(teacher.model.named_parameters())
    wanted = reordered(weights, teacher.card, scores.order, teacher.model.spec)
    assert any(not torch.equal(wanted[name], weights[name]) for name in weights)
    for name, weight in shared.model.named_parameters():
        assert torch.allclose(weight, wanted[name], atol=1e-6), name


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_draws_up_a_space(family: str, tmp_path: Path) -> None:
    run = begun(ordered(family, drawn=True), tmp_path / "out")
    shared = made(run, "super-network-2")
    drawn = run.artifact(run.pipeline.named["space"])
    assert drawn.choices.largest == shared.card
    length = shared.prepared.length or 1
    costs = [macs(drawn.space.card(drawn.space.from_json(design)), length) for design in drawn.first]
    assert costs[0] < 0.75 * costs[-1]
    for design in drawn.first:
        small = shared.extracted(drawn.space.card(drawn.space.from_json(design)))
        assert sum(weight.numel() for weight in small.parameters()) <= sum(
            weight.numel() for weight in shared.model.parameters()
        )


@pytest.mark.parametrize(
    ("family", "options", "fact"),
    [("vision", {"order": "movement"}, "movement=true"), ("encoder-decoder", {"hidden": True}, "sinusoidal")],
)
def test_what_cannot_be_scored_is_refused_before_anything_is_trained(
    family: str, options: dict[str, Any], fact: str, tmp_path: Path
) -> None:
    with pytest.raises(IllegalInput, match=fact):
        begun(Pipeline(*stages(family, **options)), tmp_path / "out")
