"""The stage that trains shared weights: what it makes, what it refuses, and that a kill at any write costs nothing."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch
from tests.supernet.small import card as small_card

from formwright.core.errors import FormwrightError, IllegalInput
from formwright.core.options import Stage
from formwright.core.rng import derive
from formwright.evaluate.shared import SharedWeights
from formwright.nn.hf import save as hf_save
from formwright.nn.inherit import inherit
from formwright.nn.task_model import TaskModel
from formwright.pipeline import runner
from formwright.pipeline.pipeline import Pipeline
from formwright.pipeline.run import PipelineRun, RunOptions
from formwright.pipeline.runner import run_pipeline
from formwright.pipeline.task_choice import TaskChoice, TrainingChoice
from formwright.pipeline.train_shared import TrainShared
from formwright.space.space import Space
from formwright.space.zoo import load_space
from formwright.space.zoo.elastic import elastic
from formwright.supernet.importance import magnitude
from formwright.supernet.lessons import Distil, InPlace
from formwright.supernet.network import SuperNetwork, begun_with
from formwright.supernet.rules import Largest, ProgressiveShrinking, Sandwich, hull
from formwright.testing.stage_contract import Killed
from formwright.train import checkpoint
from formwright.train.fit import fresh_model, task_stream
from formwright.train.loop import train
from formwright.train.prepare import Prepared, prepare

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
    assert found.card == hull(space).largest
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


def test_steps_follow_from_epochs_and_rows(tmp_path: Path) -> None:
    run = PipelineRun(Pipeline(stage(steps=None, epochs=2.0)), tmp_path)
    runner.prepare(run)
    assert run.pipeline.stages[0].steps == 2 * 200 // 8


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"epochs": 1.0}, "both"),
        ({"steps": 0}, "at least 1"),
        ({"lesson": Distil()}, "teacher"),
        ({"lesson": InPlace()}, "sandwich"),
        ({"order": stage()}, "teacher"),
    ],
)
def test_what_cannot_be_trained_is_refused(options: dict[str, Any], told: str) -> None:
    with pytest.raises(IllegalInput, match=told):
        stage(**options)


@pytest.mark.parametrize(
    ("space", "task"),
    [
        ("flexibert-nano", "mini-glue/sst2"),
        ("hat", "digits"),
        ("autoformer-tiny", "digits"),
        ("autotinybert", "digits"),
    ],
)
def test_spaces_that_cannot_share_weights_or_read_the_task_are_refused_before_anything_is_written(
    space: str, task: str, tmp_path: Path
) -> None:
    with pytest.raises(FormwrightError):
        made(Pipeline(TrainShared(space, TaskChoice(task, rows=50), steps=1, training=QUICK)), tmp_path / "out")
    assert not (tmp_path / "out").exists()


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

    def make(self, run: Any) -> None:
        run.folder.mkdir()

    def load(self, run: Any) -> Known:
        return self.found


@dataclass(frozen=True)
class Order(Teacher):
    """Leave scores of the teacher's parts."""

    NAME: ClassVar[str] = "order"

    def load(self, run: Any) -> Any:
        return magnitude(dict(self.found.model.named_parameters()), TEXT)


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

    importance = magnitude(dict(known.model.named_parameters()), TEXT)
    start = begun_with(known.model, importance, whole_embedding=True)
    network = SuperNetwork(start, Sandwich(2).bind(hull(space), steps), known.model)
    recipe = replace(training.make(steps).recipe, learning_rate=1e-3, seed=5)
    train(network, task_stream(prepared, recipe), lesson.bind("sequence-classification"), recipe)
    wanted = dict(network.model.named_parameters())
    for name, weight in found.named_parameters():
        assert torch.allclose(weight, wanted[name], atol=1e-6), name
    embedding = "transformer.encoder.embedding.tokens.weight"
    assert torch.equal(dict(found.named_parameters())[embedding], dict(known.model.named_parameters())[embedding])
