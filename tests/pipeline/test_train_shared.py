"""The stage that trains shared weights: what it makes, what it refuses, and that a kill at any write costs nothing."""

import math
import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, cast

import pytest
import torch
from tests.supernet.small import card as small_card

from formwright.arch.card import Card
from formwright.arch.declared import tensors_of
from formwright.arch.heads import HeadSpec
from formwright.core.errors import FormwrightError, IllegalInput
from formwright.core.options import Stage
from formwright.core.records import History
from formwright.core.rng import derive
from formwright.cost import params
from formwright.evaluate.context import Context
from formwright.evaluate.shared import SharedWeights
from formwright.nn.build import build
from formwright.nn.hf import save as hf_save
from formwright.nn.inherit import Reading, inherit
from formwright.nn.task_model import TaskModel
from formwright.pipeline import run_folder, runner, shared_start, shared_training
from formwright.pipeline.draw_menu import DrawMenu
from formwright.pipeline.pacing import PLAN, Pacing, Revision, Schedule
from formwright.pipeline.pipeline import Pipeline
from formwright.pipeline.plan import PacedTraining, TimeBudget
from formwright.pipeline.run import PipelineRun, Quiet, RunOptions
from formwright.pipeline.runner import run_pipeline
from formwright.pipeline.search import Search
from formwright.pipeline.shared_evaluator import SharedSubnetworks
from formwright.pipeline.task_choice import TaskChoice, TrainingChoice
from formwright.pipeline.train_shared import TrainShared
from formwright.search import searcher
from formwright.space.combinators import Choice
from formwright.space.elastic import elastic
from formwright.space.space import Space
from formwright.space.zoo import load_space
from formwright.study.stop import Stop
from formwright.supernet.automatic import sub_network
from formwright.supernet.cyclic import CyclicOffsets
from formwright.supernet.hull import Hull, find_hull
from formwright.supernet.importance import magnitude
from formwright.supernet.inner_lessons import Anchor, AttentionRelations, HiddenStates
from formwright.supernet.lessons import Distil, InPlace, Labels, TwoStage
from formwright.supernet.library import LIBRARY, Library, extracted
from formwright.supernet.network import SuperNetwork, copy_of_teacher
from formwright.supernet.rules import Largest, Phases, ProgressiveShrinking, Sandwich, Uniform, Walk
from formwright.testing.stage_contract import Killed
from formwright.train import checkpoint
from formwright.train.checkpoint import weights_digest
from formwright.train.fit import fresh_model, task_stream
from formwright.train.loop import train
from formwright.train.prepare import Prepared, prepare
from formwright.train.updates import Projected

DIGITS = TaskChoice("digits", rows=200)
QUICK = TrainingChoice(batch=8, device="cpu")
STEPS = 6


def stage(**options: Any) -> TrainShared:
    return TrainShared("autoformer-nano", DIGITS, **{"steps": STEPS, "training": QUICK, **options})


def once_for_all() -> Pipeline:
    largest = stage(rule=Largest())
    lesson = Distil(labels=0.5, temperature=1.0)
    return Pipeline(largest, stage(rule=ProgressiveShrinking(largest=0.0), lesson=lesson, teacher=largest))


def made(pipeline: Pipeline, out: Path, every: int = 2) -> PipelineRun:
    return run_pipeline(PipelineRun(pipeline, out, RunOptions(save_every=every)))


def files(out: Path) -> dict[str, bytes]:
    """Read what stages leave, but for the record of the run, its plan of time and its lock."""
    found = {str(path.relative_to(out)): path.read_bytes() for path in sorted(out.rglob("*")) if path.is_file()}
    return {name: data for name, data in found.items() if name not in ("run.json", "plan.json", ".lock")}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Train both networks of a once-for-all network without an interruption."""
    out = tmp_path_factory.mktemp("whole")
    made(once_for_all(), out)
    return files(out)


def after(number: int, call: Callable[..., Any]) -> Callable[..., Any]:
    """Call something, and be killed when that was done so many times."""
    left = [number]

    def killing(*arguments: Any, **named: Any) -> Any:
        found = call(*arguments, **named)
        left[0] -= 1
        if not left[0]:
            raise Killed
        return found

    return killing


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


MIXED = TrainShared("flexibert-nano", TaskChoice("mini-glue/sst2", rows=60), steps=3, training=QUICK)


@pytest.mark.parametrize(
    "options",
    [{}, {"rule": Phases(), "lesson": TwoStage(Labels(), HiddenStates())}],
    ids=["labels", "two stages"],
)
def test_a_space_that_chooses_between_kinds_has_a_library_and_resumes_exactly(
    options: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline = Pipeline(replace(MIXED, **options))
    run = made(pipeline, tmp_path / "whole", every=1)
    with monkeypatch.context() as patched:
        patched.setattr(checkpoint, "write", after(2, checkpoint.write))
        with pytest.raises(Killed):
            made(pipeline, tmp_path / "killed", every=1)
    made(pipeline, tmp_path / "killed", every=1)
    assert files(tmp_path / "killed") == files(tmp_path / "whole")
    assert (tmp_path / "whole" / "super-network" / LIBRARY).is_file()
    found = run.artifact(run.pipeline.stages[0])
    space = load_space("flexibert-nano")
    for turn in range(5):
        card = space.card(space.sample(derive(turn)))
        assert found.extracted(card).transformer.card == card
        assert found.views(card).missing == ()


def test_a_search_proposes_only_designs_that_the_library_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    search = Search("flexibert-nano", MIXED.task, ("params:max",), (), searcher("random"), SharedSubnetworks(MIXED))
    run = made(Pipeline(MIXED, replace(search, training=QUICK, stop=Stop(trials=1))), tmp_path / "run")
    stage = run.pipeline.of_kind(Search)[0]
    shared = run.artifact(stage.evaluator.weights)
    assert shared.holds(shared.card)

    def shallow(_: SharedWeights, card: Card) -> bool:
        return len(card.encoder.layers) == 2

    asks = stage.bound_searcher(run.stage(stage))
    assert not all(shallow(shared, asks.ask(History(), derive(turn)).card) for turn in range(20))
    monkeypatch.setattr(SharedWeights, "holds", shallow)
    assert all(shallow(shared, asks.ask(History(), derive(turn)).card) for turn in range(5))  # they are rare


@pytest.mark.parametrize(
    "options",
    [
        {"rule": Phases(), "lesson": TwoStage(Labels(), HiddenStates()), "steps": 4},
        {"rule": ProgressiveShrinking(), "lesson": Anchor(every=2)},
    ],
    ids=["two stages", "shrinking to an anchor"],
)
def test_lessons_are_given_in_a_library_too(options: dict[str, Any], tmp_path: Path) -> None:
    made(Pipeline(replace(MIXED, **options)), tmp_path)


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


def test_the_disk_of_a_library_is_more_than_that_of_a_design(tmp_path: Path) -> None:
    run = made(Pipeline(MIXED), tmp_path)
    expected = MIXED.forecast(run.stage(run.pipeline.stages[0])).disk
    folder = tmp_path / "super-network"
    found = sum((folder / name).stat().st_size for name in (LIBRARY, "model.safetensors"))
    assert expected == pytest.approx(found, rel=0.1)


# --- started with other weights ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("limit", "told"), [("latency_ms<=1e-6", "latency_ms"), ("params<=10", "params")])
def test_a_limit_that_no_design_keeps_is_refused_before_the_super_network_is_trained(
    limit: str, told: str, tmp_path: Path
) -> None:
    ends = find_hull(load_space("autoformer-nano"))
    space = Space("two", Choice((1, 2)), lambda size: ends.smallest if size == 1 else ends.largest)
    shared, by = replace(stage(), space=space), searcher("random")
    search = Search(space, DIGITS, (), (limit,), by, SharedSubnetworks(shared), QUICK, Stop(trials=2))
    with pytest.raises(IllegalInput, match=told):
        made(Pipeline(shared, search), tmp_path / "run")
    assert not list(tmp_path.rglob("*.safetensors"))


def test_a_search_of_designs_that_no_trained_weights_hold_is_refused_before_they_are_trained(tmp_path: Path) -> None:
    nano = load_space("autoformer-nano")
    ends, designs = find_hull(nano), [nano.card(nano.sample(derive(turn), "gene")) for turn in range(3)]
    small = Space("small", Choice((1,)), lambda _: ends.smallest)
    some = Space("some", Choice((1, 2, 3)), lambda number: designs[number - 1])
    by = searcher("random")
    shared = replace(stage(steps=1), space=small)
    search = Search(nano, DIGITS, (), (), by, SharedSubnetworks(shared), QUICK, Stop(trials=1))
    with pytest.raises(IllegalInput, match=r"autoformer-nano.*small"):
        made(Pipeline(shared, search), tmp_path / "refused")
    assert not (tmp_path / "refused").exists()
    library = replace(MIXED, steps=1)  # which of its designs a library holds is known when it is made
    for one, space in ((stage(steps=1), nano), (stage(steps=1), some), (library, MIXED.space)):
        search = Search(space, one.task, (), (), by, SharedSubnetworks(one), QUICK, Stop(trials=1))
        runner.prepare(PipelineRun(Pipeline(one, search), tmp_path / "accepted"))


def test_designs_are_looked_for_in_the_weights_unless_their_space_was_trained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = list[Card]()
    monkeypatch.setattr(SharedWeights, "holds", lambda self, card: bool(asked.append(card)) or len(asked) > 1)
    shared, nano = stage(steps=1), load_space("autoformer-nano")
    made(Pipeline(shared), tmp_path)
    designs = [nano.card(nano.sample(derive(turn), "gene")) for turn in range(3)]
    some = Space("some", Choice((1, 2, 3)), lambda number: designs[number - 1])
    for space, looked_at in ((nano, []), ("autoformer-nano", []), (some, designs)):
        search = Search(space, DIGITS, (), (), searcher("random"), SharedSubnetworks(shared), QUICK, Stop(trials=1))
        run = PipelineRun(Pipeline(shared, search), tmp_path)
        runner.prepare(run)
        one = run.pipeline.of_kind(Search)[0]
        one.bound_searcher(run.stage(one)).ask(History(), derive(0))
        assert len(asked) == (2 if looked_at else 0)
        assert set(asked) <= set(looked_at)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_search_judges_designs_in_groups_where_that_is_asked_for(tmp_path: Path) -> None:
    shared = stage(steps=2)
    judged = SharedSubnetworks(shared, together=3)
    search = Search(shared.space, DIGITS, (), (), searcher("random"), judged, QUICK, Stop(trials=5))
    run = run_pipeline(PipelineRun(Pipeline(shared, search), tmp_path, RunOptions(workers=1)))
    search = run.pipeline.stages[-1]
    with run.artifact(search) as opened:
        asked = [event.kind for event in opened.log.read() if event.kind in ("asked", "told")]
        trials = opened.study().history().trials
    assert asked == ["asked"] * 3 + ["told"] * 3 + ["asked"] * 2 + ["told"] * 2
    judge = search.evaluator.bind(search.setting(run.stage(search)))
    for trial in trials[:3]:  # which have no rivals: nothing was known when they were proposed
        assert trial.observation.metrics["accuracy"] == judge.evaluate(trial.request, Context()).metrics["accuracy"]


class Lines(Quiet):
    """Keep the lines that a run tells."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def tell(self, line: str) -> None:
        self.lines.append(line)


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


def started(pipeline: Pipeline, out: Path) -> tuple[Any, str]:
    """Train, and give what the last stage made and what was told about its start."""
    display = Lines()
    run = run_pipeline(PipelineRun(pipeline, out, display=display))
    (told,) = [line for line in display.lines if "start with weights" in line]
    return run.artifact(run.pipeline.stages[-1]), told


def assert_close(found: torch.nn.Module, wanted: torch.nn.Module) -> None:
    other = dict(wanted.named_parameters())
    assert all(torch.allclose(weight, other[name], atol=1e-6) for name, weight in found.named_parameters())


def test_weights_are_those_of_a_folder_or_a_stage(tmp_path: Path) -> None:
    first = stage(rule=Largest(), seed=7)
    run = made(Pipeline(first), tmp_path / "first")
    known, folder = run.artifact(run.pipeline.stages[0]), tmp_path / "first" / "super-network"
    still = stage(start=str(folder), learning_rate=1e-9, steps=1)
    for pipeline in (Pipeline(still), Pipeline(first, replace(still, start=first))):
        found, told = started(pipeline, tmp_path / str(len(pipeline.stages)))
        assert_close(found.model, known.model)
        assert told.startswith(f"{len(dict(known.model.named_parameters()))} of ")


def test_a_library_starts_from_a_library_and_from_a_model_with_its_tokens(tmp_path: Path) -> None:
    run = made(Pipeline(MIXED), tmp_path / "first")
    known, folder = run.artifact(run.pipeline.stages[0]), tmp_path / "first" / "super-network"
    still = replace(MIXED, start=str(folder), seed=3, learning_rate=1e-9, steps=1)
    found, _ = started(Pipeline(still), tmp_path / "folder")
    assert_close(found.model, known.model)
    assert found.prepared.tokeniser.digest == known.prepared.tokeniser.digest
    found, told = started(Pipeline(MIXED, replace(still, start=MIXED)), tmp_path / "stage")
    assert_close(found.library, known.library)
    assert told.startswith(f"{len(known.library.library.tensors)} of {len(known.library.library.tensors)} ")


def test_a_smaller_teacher_gives_the_part_that_it_has(tmp_path: Path) -> None:
    smallest = find_hull(load_space("autoformer-nano")).smallest
    first = replace(stage(rule=Largest(), steps=1), space=Space("small", Choice((1,)), lambda _: smallest))
    found, told = started(Pipeline(first, stage(teacher=first, learning_rate=1e-9, steps=1, seed=2)), tmp_path)
    run = PipelineRun(Pipeline(first), tmp_path / "again")
    known = run_pipeline(run).artifact(run.pipeline.stages[0])
    assert_close(found.extracted(smallest), known.model)
    assert int(told.split()[0]) == len(dict(known.model.named_parameters()))


def test_a_start_that_cannot_be_is_refused(tmp_path: Path) -> None:
    run = made(Pipeline(MIXED), tmp_path / "first")
    folder = str(tmp_path / "first" / "super-network")
    assert run.artifact(run.pipeline.stages[0]).model is not None
    with pytest.raises(IllegalInput, match="digits"):  # a model of text
        made(Pipeline(stage(start=folder)), tmp_path / "pictures")
    with pytest.raises(IllegalInput, match="not both"):
        stage(start=folder, teacher=stage())
    with pytest.raises(IllegalInput, match="nothing-there"):
        made(Pipeline(stage(start=str(tmp_path / "nothing-there"))), tmp_path / "nothing")
    assert not (tmp_path / "pictures").exists()


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


# --- with a plan that changes while the weights are trained ----------------------------------------------------------

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


# --- with a teacher of another kind ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Known:
    model: TaskModel
    prepared: Prepared


REVIEWS = TaskChoice("mini-glue/sst2", rows=60)
WORDS = replace(small_card().encoder.embedding, vocabulary=600)
TEXT = replace(small_card(), encoder=replace(small_card().encoder, embedding=WORDS))


@dataclass(frozen=True)
class Teacher(Stage):
    """Leave a model for a task, as a fine-tuning does."""

    NAME: ClassVar[str] = "teacher"
    found: Known = field(compare=False)

    def card(self, run: Any) -> Card:
        return self.found.model.transformer.card

    def make(self, run: Any) -> None:
        run.folder.mkdir()

    def load(self, run: Any) -> Known:
        return self.found


@dataclass(frozen=True)
class Order(Teacher):
    """Leave scores of the teacher's parts."""

    NAME: ClassVar[str] = "order"

    def load(self, run: Any) -> Any:
        return magnitude(dict(self.found.model.named_parameters()), TEXT, self.found.model.spec)


@pytest.mark.parametrize("steps", [3, 20], ids=["heard as it is", "heard from memory"])
def test_a_teacher_is_reordered_and_teaches_its_sub_networks(steps: int, tmp_path: Path) -> None:
    training = TrainingChoice(batch=8, decay="cosine", dropout=0.1, length=12, device="cpu")
    prepared = prepare(REVIEWS.load(), TEXT, 12)
    known = Known(fresh_model(TEXT, prepared, training.make(1)), prepared)
    space: Space = elastic(TEXT, (1, 2, 4), (8, 16, 24))
    lesson, teacher, order = Distil(0.1, 2.0), Teacher(known), Order(known)
    shared = TrainShared(
        space,
        REVIEWS,
        Sandwich(2),
        lesson,
        steps,
        learning_rate=1e-3,
        training=training,
        teacher=teacher,
        order=order,
        seed=5,
    )
    run = made(Pipeline(teacher, order, shared), tmp_path)
    found = run.artifact(run.pipeline.stages[-1]).model

    importance = magnitude(dict(known.model.named_parameters()), TEXT, known.model.spec)
    start = copy_of_teacher(known.model, importance, whole_embedding=True)
    network = SuperNetwork(start, Sandwich(2).bind(find_hull(space), steps), known.model)
    recipe = replace(training.make(steps).recipe, learning_rate=1e-3, seed=5)
    train(network, task_stream(prepared, recipe), lesson.bind("sequence-classification"), recipe)
    wanted = dict(network.model.named_parameters())
    for name, weight in found.named_parameters():
        assert torch.allclose(weight, wanted[name], atol=1e-6), name
    embedding = "transformer.encoder.embedding.tokens.weight"
    assert torch.equal(dict(found.named_parameters())[embedding], dict(known.model.named_parameters())[embedding])


@pytest.mark.parametrize(("heads", "warned"), [(2, True), (4, False)])
def test_a_teacher_whose_heads_are_regrouped_is_warned_of(heads: int, warned: bool, tmp_path: Path) -> None:
    """Two heads of twice the width have the same channels as four."""
    training = TrainingChoice(batch=8, length=12, device="cpu")
    prepared = prepare(REVIEWS.load(), TEXT, 12)
    known = Known(fresh_model(TEXT, prepared, training.make(1)), prepared)
    (block, *_) = TEXT.encoder.layers
    mixer = replace(block.mixer, heads=heads, head_width=block.mixer.heads * block.mixer.head_width // heads)
    other = replace(
        TEXT, encoder=replace(TEXT.encoder, layers=(replace(block, mixer=mixer),) * len(TEXT.encoder.layers))
    )
    space, display, teacher = (
        Space("heads", Choice((1, 2)), lambda one: (other, TEXT)[one - 1]),
        Lines(),
        Teacher(known),
    )
    shared = TrainShared(space, REVIEWS, Uniform(), steps=1, training=training, teacher=teacher)
    run_pipeline(PipelineRun(Pipeline(teacher, shared), tmp_path, display=display))
    assert any("query_key_value" in line for line in display.lines) == warned


@pytest.mark.parametrize("depth", ["first", "even"])
def test_a_teacher_larger_than_all_designs_is_cut_to_the_largest_before_it_is_trained(
    depth: str, tmp_path: Path
) -> None:
    """Its outer channels are no design's: nothing may be left of them in what is saved and judged."""
    training = TrainingChoice(batch=8, length=12, device="cpu")
    prepared = prepare(REVIEWS.load(), TEXT, 12)
    known = Known(fresh_model(TEXT, prepared, training.make(1)), prepared)
    narrow = elastic(TEXT, (1, 2), (8, 16))
    largest = find_hull(narrow).largest
    assert params(largest) < params(TEXT)
    teacher, order = Teacher(known), Order(known)
    shared = TrainShared(
        narrow, REVIEWS, Largest(), Labels(), 2, training=training, teacher=teacher, order=order, depth=depth
    )
    run = made(Pipeline(teacher, order, shared), tmp_path)
    found = run.artifact(run.pipeline.stages[-1])
    assert found.card == largest == shared.card(run.stage(run.pipeline.stages[-1]))
    importance = magnitude(dict(known.model.named_parameters()), TEXT, known.model.spec)
    start = extracted(copy_of_teacher(known.model, importance), largest, Reading(depth))
    start.transformer.encoder.embedding.requires_grad_(False)  # all designs have it whole
    recipe = replace(training.make(2).recipe, seed=0)
    network = SuperNetwork(start, Largest().bind(find_hull(narrow), 2), None)
    train(network, task_stream(prepared, recipe), Labels().bind("sequence-classification"), recipe)
    assert_close(found.model, network.model)
    embedding = "transformer.encoder.embedding.tokens.weight"
    assert torch.equal(dict(found.model.named_parameters())[embedding], known.model.state_dict()[embedding])


def test_designs_that_a_library_does_not_hold_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is told where it holds all of them."""
    told = []
    for name in ("whole", "small"):
        display = Lines()
        run_pipeline(PipelineRun(Pipeline(MIXED), tmp_path / name, RunOptions(), display))
        told.append([line for line in display.lines if "library" in line])
        space = load_space("flexibert-nano")
        few = [find_hull(space).largest, *(space.card(space.sample(derive(turn))) for turn in range(30))]
        monkeypatch.setattr(shared_start, "library_of", lambda space, head, few=few: Library.of(few, head))
    few_held, by = Library.of(few), ("design", "gene")
    held = [
        few_held.holds(tensors_of(space.card(space.sample(derive(0, "held", turn), by[turn % 2]))))
        for turn in range(200)
    ]
    assert 0 < sum(held) < 200
    none, (line,) = told
    assert none == []
    assert [int(word) for word in line.split() if word.isdigit()] == [sum(held), 200]
