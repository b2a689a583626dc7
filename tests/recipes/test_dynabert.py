"""DynaBERT: width first, then depth; on a small BERT and a vision transformer."""

import math
from pathlib import Path

import pytest
from tests.cli.training import table
from tests.pipeline.compressions import BERT, EPOCHS, QUICK, VIT, begun, bert, made, vit

from formwright.arch.card import Card
from formwright.core.errors import IllegalInput
from formwright.cost import macs
from formwright.pipeline.pipeline import Pipeline
from formwright.pipeline.task_choice import TaskChoice
from formwright.recipes.dynabert import dynabert


def test_targets_in_milliseconds_are_refused_with_what_to_use_instead() -> None:
    with pytest.raises(IllegalInput, match=r"milliseconds.*MACs or parameters.*macs=50%"):
        dynabert(TaskChoice("mini-glue/sst2"), targets=("latency_ms=8",))


@pytest.mark.parametrize("option", ["widths", "depths"])
@pytest.mark.parametrize("shares", [(), (0.5, 0.0), (1.5,), (math.nan,)])
def test_shares_that_are_none_are_refused(option: str, shares: tuple[float, ...]) -> None:
    with pytest.raises(IllegalInput, match=f"{option} must be shares"):
        dynabert(TaskChoice("mini-glue/sst2"), **{option: shares})


def test_width_is_trained_before_depth_and_teaches_it() -> None:
    made = dynabert(TaskChoice("mini-glue/sst2"))
    first, second = made.named["super-network"], made.named["super-network-2"]
    assert second.teacher is first
    assert (first.order, second.order) == (made.named["scores"], None)
    assert second.depth == "even"
    assert (first.lesson.hidden, second.lesson.hidden) == (0.1, 1.0)
    assert made.named["multiples"].depths == (1.0,)
    assert made.named["search"].stop.trials == 12
    assert Pipeline.from_json(made.to_json()) == made


def compression(folder: Path, model: Path, task: TaskChoice) -> Pipeline:
    made = dynabert(task, model=str(model), targets=("macs=75%", "macs=50%"), training=QUICK)
    quick = EPOCHS | {"super_network_2.epochs": 1.0, "teacher.accept_weak": True}
    return made.with_options([(name.split("."), value) for name, value in quick.items()])


@pytest.mark.slow
@pytest.mark.parametrize("card", [BERT, VIT], ids=["bert", "vit"])
def test_a_version_is_found_for_every_target(card: Card, tmp_path: Path) -> None:
    if card == BERT:
        task, model = TaskChoice(str(table(tmp_path)), text=("words",), label="b"), bert(tmp_path)
    else:
        task, model = TaskChoice("digits", rows=60), vit(tmp_path)
    run = begun(compression(tmp_path, model, task), tmp_path / "out")
    shared = made(run, "super-network-2")
    drawn = run.artifact(run.pipeline.named["multiples-2"])
    assert shared.card == card
    assert set(drawn.limits) == {"macs-75pct", "macs-50pct"}
    costs = [macs(drawn.space.card(design), 16) for design in drawn.space.enumerate()]
    assert min(costs) < 0.5 * macs(card, 16)
    for design in drawn.space.enumerate():
        assert shared.extracted(drawn.space.card(design)).transformer.card == drawn.space.card(design)
