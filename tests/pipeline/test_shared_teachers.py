"""Shared weights that a teacher of another kind starts and teaches."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch
from tests.pipeline.shared_runs import Lines, assert_close, made
from tests.supernet.small import card as small_card

from formwright.arch.card import Card
from formwright.core.options import Stage
from formwright.cost import params
from formwright.nn.inherit import Reading
from formwright.nn.task_model import TaskModel
from formwright.pipeline.pipeline import Pipeline
from formwright.pipeline.run import PipelineRun
from formwright.pipeline.runner import run_pipeline
from formwright.pipeline.task_choice import TaskChoice, TrainingChoice
from formwright.pipeline.train_shared import TrainShared
from formwright.space.combinators import Choice
from formwright.space.elastic import elastic
from formwright.space.space import Space
from formwright.supernet.hull import find_hull
from formwright.supernet.importance import magnitude
from formwright.supernet.lessons import Distil, Labels
from formwright.supernet.library import extracted
from formwright.supernet.network import SuperNetwork, copy_of_teacher
from formwright.supernet.rules import Largest, Sandwich, Uniform
from formwright.train.fit import fresh_model, task_stream
from formwright.train.loop import train
from formwright.train.prepare import Prepared, prepare


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
