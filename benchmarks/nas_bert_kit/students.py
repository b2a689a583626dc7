"""Found chains against chains of BERT's shape that are as large or larger, taught and fine-tuned alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, cached_property
from pathlib import Path

import torch
from safetensors.torch import load_file, save

from formwright.core.files import write_whole
from formwright.cost import params, params_body
from formwright.nn.build import initialise
from formwright.nn.settings import Settings
from formwright.nn.transformer import Transformer
from formwright.search.chain_costs import PARAMS, Size
from formwright.space.zoo.chains import Chain, Menu, chain_card
from formwright.supernet.blockwise import fill_norms, given
from formwright.tasks import load_task
from formwright.tasks.task import shortened
from formwright.train.distil import Mix, Teaching
from formwright.train.fit import Training, fit, fresh_model, task_model, with_weights
from formwright.train.hyperparameters import Hyperparameters
from formwright.train.judge import judge
from formwright.train.loop import train
from formwright.train.prepare import Prepared, prepare
from nas_bert_kit.bench import Bench, Row

_TEACHERS_RATE, _STUDENTS_RATE = 5e-5, 3e-4
FOUND, BERTS = ("found", "found-fresh"), ("bert", "bert-square")
ARMS = FOUND + BERTS


@dataclass(frozen=True)
class Effort:
    """Say how long students are taught and fine-tuned: steps on text, epochs and rows of a task."""

    steps: int
    epochs: float
    rows: int
    length: int


Whole = tuple[int, tuple[Chain, ...]]  # the width of the token table, and the blocks


def of_berts_shape(menu: Menu, limit: float, *, square: bool = False) -> Whole:
    """Give the chain of alternating attention and feed-forward layers of one width that a limit has most room for.

    The largest body comes first, and then the largest total. `square` ones have a token table as wide as their layers,
    as BERT has: more for the words, and less for the body.
    """
    alternating = tuple(("attention", "feed-forward")[place % 2] for place in range(menu.layers))
    sizes = [(table, width) for table in menu.embeddings for width in menu.widths if not square or table == width]
    every = [(table, (Chain(width, alternating),) * menu.blocks) for table, width in sizes]
    cards = {one: chain_card(menu, *one) for one in every}
    kept = [one for one in every if params(cards[one]) <= limit]
    if not kept:
        return min(every, key=lambda one: params(cards[one]))
    return max(kept, key=lambda one: (params_body(cards[one]), params(cards[one])))


@cache
def rivals(bench: Bench, name: str) -> dict[str, Whole]:
    """Give the chains of BERT's shape within a size, and the best found with at most the parameters of the first."""
    menu = bench.source.menu
    limit = Size.parse(name).limits.get(PARAMS) or bench.run.artifact(bench.choices)[name].costs[PARAMS]
    plain, square = (of_berts_shape(menu, limit, square=square) for square in (False, True))
    within = Size(name, {PARAMS: params(chain_card(menu, *plain))})
    few = bench.choices.compared(within, bench.parts)
    found = few[0].table, few[0].blocks
    return {"found": found, "found-fresh": found, "bert": plain, "bert-square": square}


def taught(bench: Bench, name: str, whole: Whole, steps: int, *, fresh: bool) -> Transformer:
    """Give a student that was taught on text, with the weights of its blocks or fresh ones; it is kept by its name.

    What is fresh begins as blocks begin, and keeps the fitted embedding and the joints.
    """
    student = bench.parts.student(*whole)
    path = bench.kept(f"{name}-{student.model.card.digest[:12]}.safetensors", {"steps": steps})
    if path.is_file():
        student.model.load_state_dict(load_file(path))
        return student.model
    if fresh:
        _reinitialise(student.model, whole[1], bench)
    batch, rate = bench.source.stage.batch, bench.students.learning_rate
    recipe = Hyperparameters(steps, batch, rate, decay="cosine", seed=bench.seed)
    train(student, bench.source.stream(bench.seed), given, recipe)
    write_whole(path, save(student.model.state_dict()))
    return student.model


def _reinitialise(model: Transformer, blocks: Sequence[Chain], bench: Bench) -> None:
    assert model.encoder is not None
    initialise(model.encoder.layers, torch.Generator().manual_seed(bench.seed), "bert")
    norms = [
        basis.norm(block.width)
        for block, basis in zip(blocks, bench.parts.fitted.bases[1:], strict=True)
        for _ in block.operations
    ]
    for layer, norm in zip(model.encoder.layers, norms, strict=True):
        fill_norms(layer, *norm)


@dataclass(frozen=True, eq=False)
class Lesson:
    """One task, and how long it is taught; the teacher is fine-tuned when it is first asked."""

    bench: Bench
    task: str
    data: Path | None
    effort: Effort

    @cached_property
    def prepared(self) -> Prepared:
        """Read the task as the teacher reads it."""
        found, source = shortened(load_task(self.task, self.data), self.effort.rows), self.bench.source
        return prepare(found, source.card, self.effort.length, source.tokeniser)

    @cached_property
    def teacher(self) -> tuple[Teaching, Row]:
        """Fine-tune the teacher, or read it where that was done before, and tell its score."""
        training, name = self._training(_TEACHERS_RATE), self.task.replace("/", "-")
        model = task_model(self.bench.imported, self.prepared, training)
        # the text on which students are taught is nothing to the teacher
        path = self.bench.kept(f"teacher-{Path(name).stem}.safetensors", asdict(replace(self.effort, steps=0)))
        if path.is_file():
            model.load_state_dict(load_file(path))
            metrics: Mapping[str, float] = judge(model.eval(), self.prepared, self.prepared.validation)
        else:
            metrics = fit(model, self.prepared, training).metrics
            write_whole(path, save(model.state_dict()))
        return Teaching(model, Mix(0.5, 0.5, 1.0)), {"score": metrics[self.prepared.task.metric]}

    def fine_tuned(self, size: str, arm: str) -> Row:
        """Fine-tune a student with the teacher's help, and judge it on validation."""
        whole = rivals(self.bench, size)[arm]
        student = taught(self.bench, f"{size}-{arm}", whole, self.effort.steps, fresh=arm != "found")
        training = self._training(_STUDENTS_RATE)
        model = with_weights(fresh_model(student.card, self.prepared, training), student.state_dict())
        trained = fit(model, self.prepared, training, teaching=self.teacher[0])
        return {"score": trained.metrics[self.prepared.task.metric], "params": params(student.card)}

    def _training(self, rate: float) -> Training:
        batch = self.bench.source.stage.batch
        steps = max(1, round(self.effort.epochs * len(self.prepared.train.examples) / batch))
        recipe = Hyperparameters(steps, batch, rate, seed=self.bench.seed)
        return Training(recipe, self.effort.length, Settings(dropout=0.1), device=self.bench.source.stage.device)
