"""Training in stages is training in one go."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from tests.evaluate.toy import card, trainer

from formwright.core.errors import IllegalInput
from formwright.core.records import Budget, Observation, Request
from formwright.evaluate.context import Context
from formwright.evaluate.full import Full
from formwright.evaluate.staged import Staged
from formwright.evaluate.training import WEIGHTS, Trainer

CARD = card(32, 32)
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
