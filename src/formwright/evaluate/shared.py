"""Score sub-networks with the weights of one super-network, without training them."""

import io
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from tokenize import TokenError

import numpy as np
from numpy.typing import NDArray

from formwright.arch.card import Card
from formwright.core.errors import IllegalInput
from formwright.core.files import write_whole
from formwright.core.records import Observation, Request, Spent, Trial
from formwright.core.rng import derive
from formwright.cost import macs
from formwright.evaluate.context import Context
from formwright.evaluate.race import Answers, Ran, Rules, race
from formwright.evaluate.training import card_of, refuse_scores
from formwright.nn.hf.load import from_hf
from formwright.nn.inherit import extract, inherit
from formwright.nn.task_model import TaskModel
from formwright.tasks.metrics import metric
from formwright.tasks.pretrained_tokeniser import read_tokeniser
from formwright.tasks.task import Task
from formwright.train.device import choose_device, threads
from formwright.train.judge import ONE_ANSWER, answers, compared, judge, truths
from formwright.train.prepare import Prepared, prepare
from formwright.train.streams import lengths_of

ANSWERS = "answers"  # the artifact: a file with the answers to all validation rows
STOPPED = "stopped after"  # the artifact of a race that was lost: rows
RIVAL = "behind trial"  # and to whom


@dataclass(frozen=True)
class SharedWeights:
    """A trained super-network, as its folder tells, and the task that its sub-networks are judged on."""

    model: TaskModel
    prepared: Prepared

    @classmethod
    def read(cls, folder: Path, task: Task, length: int) -> "SharedWeights":
        """Read a model's folder; its sub-networks are leading slices of its weights."""
        imported = from_hf(folder)
        model = imported.model()
        if not isinstance(model, TaskModel):
            raise IllegalInput(f"the model in {folder} has no head, so that its sub-networks cannot answer {task.name}")
        tokeniser = None if task.kind == "image-classification" else read_tokeniser(folder)
        return cls(model, prepare(task, imported.card, length, tokeniser))

    @property
    def card(self) -> Card:
        """Give the design of the largest sub-network."""
        return self.model.transformer.card

    def extracted(self, card: Card) -> TaskModel:
        """Give a sub-network as a model of its own."""
        views = inherit(dict(self.model.named_parameters()), self.card, card, head=self.model.spec)
        if views.missing:
            raise IllegalInput(f"the super-network lacks {views.missing[0]} of this design")
        model = extract(views, card, self.model.transformer.settings, self.model.spec)
        assert isinstance(model, TaskModel)
        return model.eval()


@dataclass(frozen=True, eq=False)
class Rival:
    """A finished trial to race against, and its answers to all rows that count."""

    trial: Trial
    answers: Answers


@dataclass(frozen=True)
class Shared:
    """Judge sub-networks on validation, and stop early those that a finished trial surely beats.

    A rival is the best finished trial that costs no more, by `cost` and by each of the `others`. One that is beaten is
    scored by what it is behind on the rows that both have answered. One whose answers are lost or damaged is no rival:
    that costs the time of a race, not the designs that would have run it. Tasks without one answer for each row are
    judged whole, and so is everything where no answers are kept: without a folder. Otherwise `most` is the number of
    rows that count at most; they are the same for all. They are judged on `device`.
    """

    network: SharedWeights
    cost: Callable[[Card], float]
    rules: Rules | None = field(default_factory=Rules)
    others: tuple[Callable[[Card], float], ...] = ()
    most: int | None = None
    device: str = "cpu"

    @cached_property
    def _rows(self) -> NDArray[np.int64]:
        """Give the numbers of the validation rows that count."""
        order = derive(0, "judged").permutation(len(self.network.prepared.validation.examples))
        return np.sort(order[: self.most])

    @property
    def _truths(self) -> Answers:
        found: Answers = truths(self.network.prepared.validation)[self._rows]
        return found

    def evaluate(self, request: Request, context: Context) -> Observation:
        """Judge the sub-network of a request."""
        began, card = time.perf_counter(), card_of(request)
        model = self.network.extracted(card).to(choose_device(self.device))
        prepared = self.network.prepared
        with threads(1):
            if prepared.task.kind not in ONE_ANSWER:
                found = judge(model, prepared, prepared.validation)
                refuse_scores(found, 0)
                return Observation(found, self._spent(began, card, len(prepared.validation.examples)))
            rival = None if self.rules is None else self._rival(card, context)
            ran = self._race(model, rival)
        metrics, artifacts = self._scored(ran, rival, card, context)
        refuse_scores(metrics, 0)
        return Observation(metrics, self._spent(began, card, len(ran.rows)), artifacts)

    def _race(self, model: TaskModel, rival: Rival | None) -> Ran:
        prepared = self.network.prepared
        deciding = metric(prepared.task.metric)
        sign = 1 if deciding.direction == "max" else -1
        return race(
            lambda rows: answers(model, prepared, prepared.validation, self._rows[rows]),
            self._truths,
            None if rival is None else rival.answers,
            lambda found, truth: sign * deciding.compute(found, truth),
            self.rules,
        )

    def _scored(
        self, ran: Ran, rival: Rival | None, card: Card, context: Context
    ) -> tuple[Mapping[str, float], dict[str, str]]:
        prepared, truth = self.network.prepared, self._truths
        found = compared(prepared, ran.answers, truth[ran.rows])
        if ran.whole:
            return found, _kept(ran.answers, card, context)
        assert rival is not None
        assert rival.trial.observation is not None
        beside = compared(prepared, rival.answers[ran.rows], truth[ran.rows])
        known = rival.trial.observation.metrics
        behind = {name: known[name] + found[name] - beside[name] for name in found}
        return behind, {STOPPED: f"{len(ran.rows)} of {len(truth)} rows", RIVAL: str(rival.trial.number)}

    def _rival(self, card: Card, context: Context) -> Rival | None:
        deciding = metric(self.network.prepared.task.metric)
        sign = 1 if deciding.direction == "max" else -1
        costs = [(cost, cost(card)) for cost in (self.cost, *self.others)]
        able = [
            (sign * trial.observation.metrics[deciding.name], trial)
            for trial in context.history.finished
            if trial.observation is not None
            and ANSWERS in trial.observation.artifacts
            and isinstance(trial.request.card, Card)
            and all(cost(trial.request.card) <= own for cost, own in costs)
        ]
        for _, trial in sorted(able, key=lambda entry: entry[0], reverse=True):
            if (kept := _read_answers(trial, context, len(self._rows))) is not None:
                return Rival(trial, kept)
        return None

    def _spent(self, began: float, card: Card, rows: int) -> Spent:
        length = round(float(lengths_of(self.network.prepared.validation.examples).mean()))
        return Spent(time.perf_counter() - began, 0, rows * macs(card, max(length, 1)))


def _kept(found: Answers, card: Card, context: Context) -> dict[str, str]:
    """Keep the answers to all rows, which later trials race against."""
    if context.folder is None:
        return {}
    name, file = f"{ANSWERS}/{card.digest[:32]}.npy", io.BytesIO()
    np.save(file, found, allow_pickle=False)
    path = context.folder / name
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, file.getvalue())
    except OSError as error:
        raise IllegalInput(f"cannot write {path}: {error.strerror or error}") from error
    return {ANSWERS: name}


def _read_answers(trial: Trial, context: Context, rows: int) -> Answers | None:
    """Read the answers that a trial gave to so many rows; None where they are lost or damaged."""
    assert trial.observation is not None
    if context.folder is None:
        return None
    try:
        found: Answers = np.load(context.folder / trial.observation.artifacts[ANSWERS], allow_pickle=False)
    except (OSError, ValueError, EOFError, SyntaxError, TokenError):  # the last two of a header that is no Python
        return None
    return found if found.shape == (rows,) else None
