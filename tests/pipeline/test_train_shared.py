"""The stage that trains shared weights: what it makes, what it refuses, and that a kill at any write costs nothing."""

import math
import os
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
import torch
from tests.pipeline.shared_runs import DIGITS, MIXED, QUICK, STEPS, Lines, after, files, made, stage
from tests.supernet.small import card as small_card

from formwright.arch.card import Card
from formwright.arch.declared import tensors_of
from formwright.arch.heads import HeadSpec
from formwright.core.errors import FormwrightError, IllegalInput
from formwright.core.rng import derive
from formwright.evaluate.shared import SharedWeights
from formwright.nn.build import build
from formwright.nn.hf import save as hf_save
from formwright.nn.inherit import Reading, inherit
from formwright.pipeline import run_folder, runner, shared_training
from formwright.pipeline.draw_menu import DrawMenu
from formwright.pipeline.pipeline import Pipeline
from formwright.pipeline.run import PipelineRun, RunOptions
from formwright.pipeline.runner import run_pipeline
from formwright.pipeline.task_choice import TaskChoice, TrainingChoice
from formwright.pipeline.train_shared import TrainShared
from formwright.space.combinators import Choice
from formwright.space.elastic import elastic
from formwright.space.space import Space
from formwright.space.zoo import load_space
from formwright.supernet.automatic import sub_network
from formwright.supernet.cyclic import CyclicOffsets
from formwright.supernet.hull import Hull, find_hull
from formwright.supernet.inner_lessons import Anchor, AttentionRelations, HiddenStates
from formwright.supernet.lessons import Distil, InPlace, Labels, TwoStage
from formwright.supernet.network import SuperNetwork
from formwright.supernet.rules import Largest, Phases, ProgressiveShrinking, Sandwich, Uniform, Walk
from formwright.testing.stage_contract import Killed
from formwright.train import checkpoint
from formwright.train.prepare import prepare
from formwright.train.updates import Projected


def once_for_all() -> Pipeline:
    largest = stage(rule=Largest())
    lesson = Distil(labels=0.5, temperature=1.0)
    return Pipeline(largest, stage(rule=ProgressiveShrinking(largest=0.0), lesson=lesson, teacher=largest))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Train both networks of a once-for-all network without an interruption."""
    out = tmp_path_factory.mktemp("whole")
    made(once_for_all(), out)
    return files(out)


PLACES = {
    "first checkpoint": (checkpoint, "write", 1),
    "last checkpoint of the teacher": (checkpoint, "write", 3),
    "second checkpoint of the students": (checkpoint, "write", 5),
    "half a folder": (hf_save, "write_code", 1),
    "half a folder of the students": (hf_save, "write_code", 2),
    "before the mark of the teacher": (hf_save, "save_pretrained_folder", 1),
    "after the mark of the teacher": (runner, "mark_done", 1),
}


@pytest.mark.parametrize("place", PLACES)
def test_a_run_that_is_killed_leaves_the_same_bytes_in_the_end(
    place: str, whole: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, name, number = PLACES[place]
    with monkeypatch.context() as patched:
        patched.setattr(module, name, after(number, getattr(module, name)))
        with pytest.raises(Killed):
            made(once_for_all(), tmp_path)
    made(once_for_all(), tmp_path)
    assert files(tmp_path) == whole


def test_what_is_done_is_not_made_again_and_what_is_damaged_is(
    whole: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(once_for_all(), tmp_path)
    steps: list[str] = []
    original = TrainShared.make
    monkeypatch.setattr(TrainShared, "make", lambda self, run: (steps.append(run.name), original(self, run))[1])
    made(once_for_all(), tmp_path)
    assert steps == []
    weights = tmp_path / "super-network-2" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-4])
    made(once_for_all(), tmp_path)
    assert steps == ["super-network-2"]
    assert files(tmp_path) == whole


def test_the_artifact_is_a_network_out_of_which_all_designs_are_read(tmp_path: Path) -> None:
    run = made(Pipeline(stage()), tmp_path)
    found = run.artifact(run.pipeline.stages[0])
    assert isinstance(found, SharedWeights)
    space = load_space("autoformer-nano")
    assert found.card == find_hull(space).largest
    assert found.prepared.task.labels == tuple("0123456789")
    one = space.card(space.sample(derive(4)))
    views = inherit(dict(found.model.named_parameters()), found.card, one, head=found.model.spec).weights
    own = dict(found.extracted(one).named_parameters())
    assert all(torch.equal(own[name], weight) for name, weight in views.items())
    assert (tmp_path / "super-network" / "README.md").is_file()


def test_the_seed_decides_the_weights(tmp_path: Path) -> None:
    found = []
    for number, seed in enumerate((0, 0, 1)):
        made(Pipeline(stage(seed=seed)), tmp_path / str(number))
        found.append((tmp_path / str(number) / "super-network" / "model.safetensors").read_bytes())
    assert found[0] == found[1] != found[2]


def test_the_seed_decides_where_a_walk_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seeds, bind = set[tuple[int, int]](), Walk.bind

    def noted(rule: Walk, hull: Any, steps: int, seed: int = 0) -> Any:
        seeds.add((steps, seed))
        return bind(rule, hull, steps, seed)

    monkeypatch.setattr(Walk, "bind", noted)
    made(Pipeline(stage(rule=Walk(3), seed=5)), tmp_path)
    assert (STEPS, 5) in seeds


def test_designs_are_compared_by_validation_rows() -> None:
    prepared = prepare(DIGITS.load(), find_hull(load_space("autoformer-nano")).largest, 0)
    held = torch.from_numpy(prepared.validation.examples.pixels).flatten(1).tolist()
    found = shared_training._held_out(prepared).inputs.flatten(1).tolist()
    assert len(held) == 300  # in three batches of the same size: of 128, 128 and 44 the first may be the last
    assert len(found) == 100
    assert all(one in held for one in found)


def test_an_embedding_is_whole_only_where_all_designs_have_the_same_one() -> None:
    known = build(small_card(), head=HeadSpec("sequence-classification", 2))
    narrow = sub_network(small_card(), ((1, 8),) * 3, 8)
    for smallest in (small_card(), sub_network(small_card(), ((1, 8),) * 3), narrow):
        hull = Hull(elastic(small_card()), small_card(), smallest)
        assert shared_training._has_whole_embedding(hull, known) == (smallest is not narrow)


def test_a_plan_that_keeps_its_steps_skips_and_repeats_none() -> None:
    """A share such as 0.29 of 100 steps is a little less than 29."""
    stream = shared_training.PlannedStepStream(cast(Any, None), lambda step: step / 100, 100)
    assert [stream.planned_step(step) for step in range(100)] == list(range(100))


def test_another_rule_is_another_run(tmp_path: Path) -> None:
    made(Pipeline(stage()), tmp_path)
    with pytest.raises(IllegalInput, match=r"super-network\.rule"):
        made(Pipeline(stage(rule=Sandwich())), tmp_path)


def test_a_pipeline_with_shared_weights_is_plain_json() -> None:
    pipeline = once_for_all()
    data = pipeline.to_json()
    assert data["stages"]["super-network-2"]["teacher"] == "super-network"
    assert Pipeline.from_json(data) == pipeline
    changed = pipeline.with_options([(["super_network_2", "rule", "designs"], 3)])
    assert changed.stages[1].rule == ProgressiveShrinking(largest=0.0, designs=3)
    assert changed.stages[1].teacher is changed.stages[0]


@pytest.mark.parametrize("augment", ["", "shift"])
def test_answers_of_a_teacher_are_kept_where_rows_come_again(
    augment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, original = [], shared_training.cached_teacher
    monkeypatch.setattr(
        shared_training, "cached_teacher", lambda *a, **named: (asked.append(a), original(*a, **named))[1]
    )
    first, many = stage(rule=Largest(), steps=1), replace(QUICK, batch=64, augment=augment)
    made(Pipeline(first, stage(lesson=Distil(), teacher=first, training=many)), tmp_path)
    assert len(asked) == (not augment)


def test_steps_follow_from_epochs_and_rows(tmp_path: Path) -> None:
    run = PipelineRun(Pipeline(stage(steps=None, epochs=2.0)), tmp_path)
    runner.prepare(run)
    assert run.pipeline.stages[0].steps == 2 * 200 // 8


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"epochs": 1.0}, "both"),
        ({"steps": 0}, "at least 1, not 0"),
        ({"steps": None, "epochs": 0.0}, "above 0, not 0.0"),
        ({"steps": None, "epochs": math.nan}, "above 0, not nan"),
        ({"steps": None, "epochs": math.inf}, "above 0, not inf"),
        ({"lesson": Distil()}, "teacher"),
        ({"lesson": InPlace()}, "sandwich"),
        ({"lesson": HiddenStates()}, "teacher"),
        ({"lesson": TwoStage(Distil())}, "teacher"),
        ({"lesson": TwoStage(Distil(), InPlace()), "rule": Uniform(2), "teacher": stage()}, "sandwich"),
        ({"lesson": TwoStage(Distil(), InPlace()), "rule": Sandwich()}, "teacher"),
        ({"order": stage()}, "teacher"),
        ({"channels": "cyclic", "start": "a folder"}, "start"),
        ({"channels": "cyclic", "lesson": Anchor()}, "anchor"),
        ({"update": Projected()}, "sandwich"),
        ({"rule": Phases(), "lesson": TwoStage(Labels(), share=0.2)}, "share"),
    ],
)
def test_what_cannot_be_trained_is_refused(options: dict[str, Any], told: str) -> None:
    with pytest.raises(IllegalInput, match=told):
        stage(**options)


def settled(pipeline: Pipeline, out: Path) -> tuple[PipelineRun, list[str]]:
    """Settle the options of a run, whose folder is claimed, and give what is told."""
    display = Lines()
    run = PipelineRun(pipeline, out, display=display)
    run_folder.claim_folder(out, runner.prepare(run), force=False)
    return run, display.lines


def test_all_cores_train_where_no_number_of_threads_is_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 6)
    one = stage(training=replace(QUICK, threads=None))
    assert one.training.make(1).threads == 6
    run, _ = settled(Pipeline(one), tmp_path)
    assert run.pipeline.stages[0].training.threads == 6
    monkeypatch.setattr(os, "cpu_count", lambda: 2)  # resumed on another machine
    again, _ = settled(Pipeline(one), tmp_path)
    assert again.pipeline == run.pipeline


def test_what_a_teacher_decides_is_told_where_another_value_was_given(tmp_path: Path) -> None:
    reviews = TaskChoice("mini-glue/sst2", rows=60)
    quick = replace(QUICK, length=12, threads=2)
    first = TrainShared("magic-nano", reviews, Largest(), steps=2, training=quick)
    for number, (given, told) in enumerate(
        [
            (replace(QUICK, length=20), ["length=12"]),
            (replace(QUICK, length=20, threads=3), ["length=12", "threads=2"]),
            (quick, []),
            (TrainingChoice(batch=8), []),
            (replace(QUICK, threads=2, device="auto"), []),
        ]
    ):
        second = TrainShared("magic-nano", reviews, lesson=Distil(), steps=2, teacher=first, training=given)
        run, lines = settled(Pipeline(first, second), tmp_path / str(number))
        lines = [line for line in lines if line.startswith("super-network-2 ")]
        assert len(lines) == len(told)
        assert all(value in line for value, line in zip(told, lines, strict=True))
        training = run.pipeline.stages[1].training
        assert (training.length, training.threads, training.device) == (12, 2, "cpu")


def test_a_step_of_several_batches_is_one_step_of_the_rule(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usual, steps, drawn = TrainShared.training_for, list[int](), SuperNetwork.drawn

    def accumulating(one: TrainShared, many: int) -> Any:
        made = usual(one, many)
        return replace(made, recipe=replace(made.recipe, accumulate=2))

    monkeypatch.setattr(TrainShared, "training_for", accumulating)
    monkeypatch.setattr(
        SuperNetwork, "drawn", lambda self, draw, step: (steps.append(step), drawn(self, draw, step))[1]
    )
    made(Pipeline(stage(rule=Phases((Largest(), Walk(3)), (0.5, 0.5)))), tmp_path)
    assert steps == [step for step in range(STEPS) for _ in range(2)]


@pytest.mark.parametrize(
    ("space", "task"),
    [
        ("flexibert-nano", "digits"),
        ("hat", "digits"),
        ("autoformer-tiny", "digits"),
        ("autotinybert", "digits"),
    ],
)
def test_spaces_that_cannot_read_the_task_are_refused_before_anything_is_written(
    space: str, task: str, tmp_path: Path
) -> None:
    with pytest.raises(FormwrightError):
        made(Pipeline(TrainShared(space, TaskChoice(task, rows=50), steps=1, training=QUICK)), tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("teacher", [None, stage(rule=Largest(), steps=2)], ids=["alone", "with a teacher"])
def test_designs_that_a_lesson_cannot_compare_are_refused_before_anything_is_written(
    teacher: TrainShared | None, tmp_path: Path
) -> None:
    one = stage(rule=Sandwich(), lesson=AttentionRelations(heads=1_000), teacher=teacher)
    with pytest.raises(IllegalInput, match="heads"):
        made(Pipeline(*(() if teacher is None else (teacher,)), one), tmp_path / "out")
    assert not (tmp_path / "out").exists()


# what every rule, lesson and update may add to a training must be in its checkpoints
WAYS: dict[str, dict[str, Any]] = {
    "uniform by rows": {"rule": Uniform(3, rows="apart")},
    "walk, cyclic channels": {"rule": Walk(restart=3), "channels": "cyclic"},
    "phases": {"rule": Phases((Largest(), ProgressiveShrinking(), Uniform()), (0.2, 0.4, 0.4))},
    "in place, projected": {"rule": Sandwich(), "lesson": InPlace(), "update": Projected(after=0.2)},
    "hidden states of the largest": {"rule": Sandwich(), "lesson": HiddenStates(labels=0.5)},
    "hidden states": {"lesson": HiddenStates(), "teacher": stage(rule=Largest(), steps=2)},
    "attention relations": {"lesson": AttentionRelations(heads=2), "teacher": stage(rule=Largest(), steps=2)},
    "two stages": {
        "rule": Phases(),
        "lesson": TwoStage(Labels(), HiddenStates(), share=0.5),
    },
    "two stages with a teacher": {
        "rule": Phases((Largest(), Uniform(2)), (1, 2)),
        "lesson": TwoStage(Distil(), Distil(0.5), share=1 / 3),
        "teacher": stage(rule=Largest(), steps=2),
    },
    "anchor": {"rule": Walk(2), "lesson": Anchor(every=2)},
    "anchor with a teacher": {"lesson": Anchor(Distil(), every=1), "teacher": stage(rule=Largest(), steps=2)},
}


@pytest.mark.parametrize("way", WAYS)
def test_a_training_of_any_kind_resumes_exactly(way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = stage(**WAYS[way])
    pipeline = Pipeline(*(() if one.teacher is None else (one.teacher,)), one)
    made(pipeline, tmp_path / "whole")
    number = 2 if one.teacher is None else 3  # steps 4 of 6, the teacher's own being one
    with monkeypatch.context() as patched:
        patched.setattr(checkpoint, "write", after(number, checkpoint.write))
        with pytest.raises(Killed):
            made(pipeline, tmp_path / "killed")
    run = made(pipeline, tmp_path / "killed")
    assert files(tmp_path / "killed") == files(tmp_path / "whole")
    largest = find_hull(load_space("autoformer-nano")).largest
    names = dict(run.artifact(run.pipeline.stages[-1]).model.named_parameters()).keys()
    assert names == tensors_of(largest, HeadSpec("sequence-classification", 10)).keys()  # nothing of the lesson


MASKED = TrainShared("autotinybert-nano", TaskChoice("pydoc/masked", rows=64), steps=2, training=QUICK)


@pytest.mark.parametrize(
    "options",
    [
        {"rule": Walk(2), "lesson": Anchor(every=1)},
        {"rule": Uniform(8, rows="apart"), "training": replace(QUICK, length=8), "steps": 4},
    ],
    ids=["anchor", "rows apart"],
)
def test_masked_words_are_learned_by_any_rule(options: dict[str, Any], tmp_path: Path) -> None:
    made(Pipeline(replace(MASKED, **options)), tmp_path)


def test_the_design_of_a_super_network_is_that_of_its_weights(tmp_path: Path) -> None:
    nano = load_space("autoformer-nano")
    small = Space("small", Choice((1,)), lambda _: find_hull(nano).smallest)
    first = replace(stage(rule=Largest(), steps=1), space=small)
    second = stage(teacher=first, steps=1)
    run = made(Pipeline(first, second), tmp_path)
    for one in run.pipeline.stages:
        assert one.card(run.stage(one)) == run.artifact(one).card
    assert run.artifact(run.pipeline.stages[1]).card == find_hull(nano).largest


def test_a_teacher_whose_space_a_stage_draws_up_is_known_before_that_is_done(tmp_path: Path) -> None:
    reviews = TaskChoice("mini-glue/sst2", rows=60)
    options: dict[str, Any] = {"steps": 2, "training": replace(QUICK, length=12)}
    menu = DrawMenu("magic-nano", reviews, length=12)
    first = TrainShared(menu, reviews, Largest(), **options)
    taught = TrainShared("magic-nano", reviews, lesson=Distil(), teacher=first, **options)
    run = PipelineRun(Pipeline(menu, first, taught), tmp_path / "out", RunOptions())
    runner.prepare(run)
    here = run.pipeline.of_kind(TrainShared)[0]
    assert here.card(run.stage(here)) == find_hull(load_space("magic-nano")).largest
    assert not (tmp_path / "out").exists()


def test_a_largest_design_that_guesses_is_reported(tmp_path: Path) -> None:
    reports = []
    for rate in (1e-9, 1e-2):
        display = Lines()
        trained = stage(rule=Largest(), steps=60, learning_rate=rate)
        run_pipeline(PipelineRun(Pipeline(trained), tmp_path / str(rate), RunOptions(), display))
        reports.append([line for line in display.lines if "chance" in line])
    (report,), none = reports
    assert "now 1e-09; --set super-network.learning_rate=" in report
    assert none == []


def test_evenly_spaced_layers_need_a_largest_design(tmp_path: Path) -> None:
    with pytest.raises(IllegalInput, match="flexibert-nano"):
        made(Pipeline(replace(MIXED, depth="even")), tmp_path)
    run = made(Pipeline(stage(depth="even")), tmp_path / "even")
    found = run.artifact(run.pipeline.stages[0])
    shallow = find_hull(load_space("autoformer-nano")).smallest
    deep = replace(shallow, encoder=replace(shallow.encoder, layers=shallow.encoder.layers * 2))
    last = "transformer.encoder.layers.{}.mixer_norm.weight"
    own, whole = (dict(model.named_parameters()) for model in (found.extracted(deep), found.model))
    assert torch.equal(own[last.format(1)], whole[last.format(2)][: len(own[last.format(1)])])  # of four layers


def test_narrower_designs_are_trained_and_read_with_cyclic_channels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained: list[Any] = []
    plain = SuperNetwork.views

    def views(network: SuperNetwork, card: Card) -> Any:
        trained.append(network.reading)
        return plain(network, card)

    monkeypatch.setattr(SuperNetwork, "views", views)
    with pytest.raises(IllegalInput, match="flexibert-nano"):
        made(Pipeline(replace(MIXED, channels="cyclic")), tmp_path)
    run = made(Pipeline(stage(channels="cyclic")), tmp_path / "cyclic")
    found, space = run.artifact(run.pipeline.stages[0]), load_space("autoformer-nano")
    assert set(trained) == {found.reading} == {Reading("first", CyclicOffsets.of(space))}
    name, whole = "transformer.encoder.embedding.class_token", dict(found.model.named_parameters())
    cards = (space.card(space.sample(derive(0, turn))) for turn in range(99))
    middle = next(card for card in cards if card.encoder.output_width == 24)  # of 16, 24 and 32
    read = dict(found.extracted(middle).named_parameters())[name]
    assert torch.equal(read, torch.cat((whole[name][:, 16:], whole[name][:, :8]), 1))
