"""Trainings of shared weights whose number of steps changes on the way."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.pipeline.shared_runs import after, files, made, stage

from formwright.arch.card import Card
from formwright.pipeline import runner
from formwright.pipeline.pacing import PLAN, Pacing, Revision, Schedule
from formwright.pipeline.pipeline import Pipeline
from formwright.pipeline.plan import PacedTraining, TimeBudget
from formwright.space.zoo import load_space
from formwright.supernet.hull import find_hull
from formwright.supernet.lessons import Distil, Labels, TwoStage
from formwright.supernet.network import SuperNetwork
from formwright.supernet.rules import Largest, Phases, ProgressiveShrinking, Sandwich, Uniform, Walk
from formwright.testing.stage_contract import Killed
from formwright.train import checkpoint
from formwright.train.checkpoint import weights_digest
from formwright.train.updates import Projected

PLANNED, CHANGED = 12, 4  # the first number of steps, and the step at which it changes


class Replanned(Pacing):
    """Change the number of steps once, when a step is reached, as a machine does that is faster or slower."""

    steps_then = 0

    def next_look(self, stage: str, step: int) -> int | None:
        return CHANGED if step < CHANGED else None

    def look(self, stage: str, step: int, step_seconds: float) -> int | None:
        changed = Revision(stage, step, self.steps_then)
        self.schedule = replace(self.schedule, revisions=(*self.schedule.revisions, changed))
        self.write()
        return self.steps_then


def replanned_from(path: Path, steps: int) -> Replanned:
    plan = {name: {"steps": PLANNED} for name in ("super-network", "super-network-2")}
    trainings = dict.fromkeys(plan, PacedTraining())
    pacing = Replanned(
        Schedule.read(path) if path.is_file() else Schedule(plan), TimeBudget(None, {}, lambda *_: {}, trainings), path
    )
    pacing.steps_then = steps
    return pacing


class Watched:
    """Note for every step of a super-network its designs, whether its frozen copy taught, and how far it was."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, steps: int) -> None:
        self.designs, self.taught, self.progress, self.largest = list[list[Card]](), list[Any](), list[float](), 0
        monkeypatch.setattr(runner, "begin_pacing", lambda run: replanned_from(run.out / PLAN, steps))
        cards, taught, backward = SuperNetwork.cards, SuperNetwork.taught_by_frozen, Projected.backward

        def noted_cards(network: SuperNetwork) -> list[Card]:
            self.designs.append(cards(network))
            self.taught.append(None)
            return self.designs[-1]

        def noted_teaching(network: SuperNetwork, card: Card) -> Any:
            self.taught[-1] = weights_digest(dict(network.frozen.named_parameters()))
            return taught(network, card)

        def noted_progress(update: Projected, losses: Any, parameters: Any, progress: float) -> None:
            self.progress.append(progress)
            backward(update, losses, parameters, progress)

        monkeypatch.setattr(SuperNetwork, "cards", noted_cards)
        monkeypatch.setattr(SuperNetwork, "taught_by_frozen", noted_teaching)
        monkeypatch.setattr(Projected, "backward", noted_progress)


# of 12 steps 4 are done, a third; the other two thirds are spread over 4 steps, or over 16 or 17
@pytest.mark.parametrize(("steps", "switch"), [(8, 5), (20, 8), (21, 9), (PLANNED, 6)])
def test_phases_lessons_and_projections_have_their_shares_of_a_plan_that_changes(
    steps: int, switch: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = Watched(monkeypatch, steps)
    rule = Phases((Largest(), Sandwich(0)), (1, 1))
    lesson = TwoStage(Labels(), Distil(0.5), share=0.5)
    made(Pipeline(stage(rule=rule, lesson=lesson, update=Projected(after=0.5), steps=PLANNED)), tmp_path)
    assert [len(cards) for cards in seen.designs] == [1] * switch + [2] * (steps - switch)
    assert [one is not None for one in seen.taught] == [False] * switch + [True] * (steps - switch)
    assert len(set(seen.taught[switch:])) == 1  # copied once, and neither before nor after
    assert [one >= 0.5 for one in seen.progress] == [False] * switch + [True] * (steps - switch)
    left = (PLANNED - CHANGED) / PLANNED
    then = [1 - left + left * one / (steps - CHANGED) for one in range(steps - CHANGED)]
    assert seen.progress == pytest.approx([*(one / PLANNED for one in range(CHANGED)), *then])


@pytest.mark.parametrize(("steps", "first"), [(8, 5), (20, 8)])
def test_a_shrinking_opens_everything_in_a_plan_that_changes(
    steps: int, first: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = Watched(monkeypatch, steps)
    rule = ProgressiveShrinking(largest=0.5, order=("ratio", "heads"), designs=6, last=1.0)
    made(Pipeline(stage(rule=rule, steps=PLANNED)), tmp_path)
    largest = find_hull(load_space("autoformer-nano")).largest
    assert [set(cards) == {largest} for cards in seen.designs] == [True] * first + [False] * (steps - first)
    heads = [{layer.mixer.heads for card in cards for layer in card.encoder.layers} for cards in seen.designs]
    ratios = [
        {layer.feed_forward[0] / layer.width for card in cards for layer in card.encoder.layers}
        for cards in seen.designs
    ]
    assert heads[first] == {4}
    assert len(heads[-1]) > 1
    assert len(ratios[-1]) > 1


# before the plan changes, after it, and after the lesson
@pytest.mark.parametrize(("at", "steps"), [(1, 8), (3, 8), (1, 20), (3, 20), (6, 20)])
def test_a_training_whose_plan_changed_resumes_exactly(
    at: int, steps: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Watched(monkeypatch, steps)
    lesson = TwoStage(Labels(), Distil(0.5), share=0.5)
    pipeline = Pipeline(stage(rule=Phases((Largest(), Uniform(2)), (1, 1)), lesson=lesson, steps=PLANNED))
    made(pipeline, tmp_path / "whole")
    with monkeypatch.context() as patched:
        patched.setattr(checkpoint, "write", after(at, checkpoint.write))
        with pytest.raises(Killed):
            made(pipeline, tmp_path / "killed")
    made(pipeline, tmp_path / "killed")
    assert files(tmp_path / "killed") == files(tmp_path / "whole")


@pytest.mark.parametrize("rule", [Walk(3), Uniform()], ids=["walk", "uniform"])
def test_rules_that_have_no_phases_go_step_by_step_whatever_the_plan(
    rule: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = Watched(monkeypatch, 8)
    steps: list[int] = []
    drawn = SuperNetwork.drawn
    monkeypatch.setattr(
        SuperNetwork, "drawn", lambda self, draw, step: (steps.append(step), drawn(self, draw, step))[1]
    )
    made(Pipeline(stage(rule=rule, steps=PLANNED)), tmp_path / "one stage")
    assert steps == list(range(8))
    assert len(seen.designs) == 8
    made(Pipeline(stage(rule=rule, lesson=TwoStage(Labels(), Distil(0.5)), steps=PLANNED)), tmp_path / "two stages")
    assert steps == [*range(8), *range(8)]
    assert [one is not None for one in seen.taught[8:]] == [False] * 5 + [True] * 3
