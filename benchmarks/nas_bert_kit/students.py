"""Found chains against chains of BERT's shape and the same size, taught and fine-tuned alike."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import torch
from safetensors.torch import load_file, save

from formwright.compress.blockwise.choices import Choice
from formwright.compress.blockwise.sizes import PARAMS
from formwright.core.files import write_whole
from formwright.cost import params
from formwright.nn.build import initialise
from formwright.nn.settings import Settings
from formwright.nn.transformer import Transformer
from formwright.space.zoo.chains import Chain, chain_card
from formwright.supernet.blockwise import given
from formwright.tasks import load_task
from formwright.tasks.shorten import shortened
from formwright.train.distil import Mix, Teaching
from formwright.train.fit import Training, fit, fresh_model, with_weights
from formwright.train.imported import task_model
from formwright.train.loop import train
from formwright.train.prepare import Prepared, prepare
from formwright.train.recipe import Recipe
from nas_bert_kit.bench import Bench, Row

_TEACHERS_RATE, _STUDENTS_RATE = 5e-5, 3e-4
ARMS = ("found", "found-fresh", "bert")


@dataclass(frozen=True)
class Effort:
    """Say how long students are taught and fine-tuned: steps on text, epochs and rows of a task."""

    steps: int
    epochs: float
    rows: int
    length: int


def of_berts_shape(bench: Bench, limit: float) -> tuple[int, tuple[Chain, ...]]:
    """Give the largest chain within a limit that alternates attention and feed-forward layers of one width."""
    menu = bench.selection.started.menu
    alternating = tuple(("attention", "feed-forward")[place % 2] for place in range(menu.layers))
    every = [(table, (Chain(width, alternating),) * menu.blocks) for table in menu.embeddings for width in menu.widths]
    sizes = {one: params(chain_card(menu, *one)) for one in every}
    kept = [one for one in every if sizes[one] <= limit] or [min(every, key=sizes.__getitem__)]
    return max(kept, key=sizes.__getitem__)


def taught(bench: Bench, size: str, arm: str, choice: Choice, steps: int) -> Transformer:
    """Give a student that was taught on text: the found chain with its blocks' weights or fresh ones, or BERT's shape.

    What is fresh keeps the fitted embedding and the joints. Its weights are kept beside the results.
    """
    table, blocks = of_berts_shape(bench, choice.costs[PARAMS]) if arm == "bert" else (choice.table, choice.blocks)
    student = bench.selection.student(table, blocks, bench.networks)
    path = bench.results.path.with_suffix("") / f"{bench.seed}-{size}-{arm}-{steps}.safetensors"
    if path.is_file():
        student.model.load_state_dict(load_file(path))
        return student.model
    if arm != "found":
        assert student.model.encoder is not None
        initialise(student.model.encoder.layers, torch.Generator().manual_seed(bench.seed), "width")
    method = bench.job.method
    recipe = Recipe(steps, method.batch, method.student_rate, decay="cosine", seed=bench.seed)
    train(student, bench.selection.started.stream(bench.seed), given, recipe)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, save(student.model.state_dict()))
    return student.model


@dataclass(frozen=True, eq=False)
class Lesson:
    """One task, and how long it is taught; the teacher is fine-tuned when it is first asked."""

    bench: Bench
    task: str
    data: Path
    effort: Effort

    @cached_property
    def prepared(self) -> Prepared:
        """Read the task as the teacher reads it."""
        found, started = shortened(load_task(self.task, self.data), self.effort.rows), self.bench.selection.started
        return prepare(found, started.imported.card, self.effort.length, started.tokeniser)

    @cached_property
    def teacher(self) -> tuple[Teaching, Row]:
        """Fine-tune the teacher, and tell its score."""
        training = self._training(_TEACHERS_RATE)
        model = task_model(self.bench.selection.started.imported, self.prepared, training)
        found = fit(model, self.prepared, training)
        return Teaching(found.model, Mix(0.5, 0.5, 1.0)), {"score": found.metrics[self.prepared.task.metric]}

    def fine_tuned(self, size: str, arm: str, choice: Choice) -> Row:
        """Fine-tune a student with the teacher's help, and judge it on validation."""
        student = taught(self.bench, size, arm, choice, self.effort.steps)
        training = self._training(_STUDENTS_RATE)
        model = with_weights(fresh_model(student.card, self.prepared, training), student.state_dict())
        found = fit(model, self.prepared, training, teaching=self.teacher[0])
        return {"score": found.metrics[self.prepared.task.metric], "params": params(student.card)}

    def _training(self, rate: float) -> Training:
        batch = self.bench.job.method.batch
        steps = max(1, round(self.effort.epochs * len(self.prepared.train.examples) / batch))
        recipe = Recipe(steps, batch, rate, seed=self.bench.seed)
        return Training(recipe, self.effort.length, Settings(dropout=0.1), device=self.bench.job.device)
