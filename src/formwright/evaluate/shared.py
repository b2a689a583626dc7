"""Score sub-networks with the weights of one super-network, and stop early those that are clearly worse."""

import io
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from tokenize import TokenError

import numpy as np
import torch
from numpy.typing import NDArray

from formwright.arch.card import Card
from formwright.arch.declared import tensors_of
from formwright.core.errors import IllegalInput
from formwright.core.files import write_file
from formwright.core.records import Observation, Request, Spent, Trial
from formwright.core.rng import derive
from formwright.cost import macs
from formwright.evaluate.context import Context, card_of
from formwright.evaluate.races import Answers, RaceResult, RaceRules, races
from formwright.evaluate.training import require_finite_scores
from formwright.nn.hf.load import from_hf
from formwright.nn.inherit import PLAIN, InheritedWeights, Reading, inherit
from formwright.nn.task_model import TaskModel
from formwright.supernet.library import LIBRARY, LibraryWeights, extracted, views_of
from formwright.tasks.kind import kind_of
from formwright.tasks.metrics import metric
from formwright.tasks.task import Task
from formwright.train.device import choose_device, threads
from formwright.train.judge import answers, compared, judge, truths
from formwright.train.prepare import Prepared, prepare
from formwright.train.streams import KeptBatches

_Scored = tuple[Mapping[str, float], dict[str, str], int]  # scores, artifacts, and how many rows were answered

ANSWERS = "answers"  # the artifact: a file with the answers to all validation rows
STOPPED = "stopped after"  # artifact of a stopped race: rows
RIVAL = "behind trial"  # and the rival


@dataclass(frozen=True)
class SharedWeights:
    """A trained super-network and the task that its sub-networks are evaluated on.

    `model` is its largest design; where that does not hold the weights of all others, they are in the `library`.
    `reading` says which layers and channels smaller designs have.
    """

    model: TaskModel
    prepared: Prepared
    library: LibraryWeights | None = None
    reading: Reading = PLAIN

    @classmethod
    def read(cls, folder: Path, task: Task, length: int, reading: Reading = PLAIN) -> "SharedWeights":
        """Read the folder of a super-network."""
        imported = from_hf(folder)
        model = imported.model()
        if not isinstance(model, TaskModel):
            raise IllegalInput(f"the model in {folder} has no head, so that its sub-networks cannot answer {task.name}")
        path = folder / LIBRARY
        library = LibraryWeights.load(path, model.spec, model.settings) if path.is_file() else None
        prepared = prepare(task, imported.card, length, kind_of(task).read_tokeniser(folder, imported.card))
        return cls(model, prepared, library, reading)

    @property
    def card(self) -> Card:
        return self.model.transformer.card

    def holds(self, card: Card) -> bool:
        """Tell whether the weights of a design are there."""
        if self.library is not None:
            return self.library.library.holds(tensors_of(card, self.model.spec))
        reading, spec = self.reading, self.model.spec
        found = inherit(self._shapes, self.card, card, head=spec, depth=reading.depth, start=reading.start)
        return not found.missing

    @cached_property
    def _shapes(self) -> dict[str, torch.Tensor]:
        """Return tensors without numbers in place of the weights: cutting these costs next to nothing."""
        return {name: torch.empty_like(weight, device="meta") for name, weight in self.model.named_parameters()}

    def views(self, card: Card) -> InheritedWeights:
        return views_of(self.library or self.model, card, self.reading)

    def extracted(self, card: Card) -> TaskModel:
        return extracted(self.library or self.model, card, self.reading)


@dataclass(frozen=True, eq=False)
class Rival:
    """A finished trial to race against, and its answers to all rows in use."""

    trial: Trial
    answers: Answers


@dataclass(frozen=True)
class Shared:
    """Evaluate sub-networks on validation, and stop early those that are significantly worse than a finished trial.

    The rival is the best finished trial that costs no more, by `cost` and by each of the `others`. A stopped
    sub-network is scored by its difference from the rival on the rows that both answered. Trials with missing or
    damaged answers are not used as rivals. All rows are evaluated for tasks without one answer per row, and without a
    folder for answers. Otherwise at most `most` rows are used, the same for all. The super-network and the batches of
    validation rows are on `device` once, for all designs that are evaluated there. `together` is how many designs a
    worker asks for before it evaluates them.
    """

    network: SharedWeights
    cost: Callable[[Card], float]
    rules: RaceRules | None = field(default_factory=RaceRules)
    others: tuple[Callable[[Card], float], ...] = ()
    most: int | None = None
    device: str = "cpu"
    together: int = 1

    @cached_property
    def _placed(self) -> SharedWeights:
        """Return the network on the device, with batches of validation rows that are made and moved once."""
        network, device = self.network, choose_device(self.device)
        library = None if network.library is None else network.library.to(device)
        kept = replace(network.prepared.validation, batches=KeptBatches())
        prepared = replace(network.prepared, validation=kept)
        return replace(network, model=network.model.to(device), library=library, prepared=prepared)

    @cached_property
    def _rows(self) -> NDArray[np.int64]:
        """Return the indices of the validation rows in use."""
        order = derive(0, "judged").permutation(len(self.network.prepared.validation.examples))
        return np.sort(order[: self.most])

    @property
    def _truths(self) -> Answers:
        found: Answers = truths(self.network.prepared.validation)[self._rows]
        return found

    def evaluate(self, request: Request, context: Context) -> Observation:
        return self.evaluate_together([(request, context)])[0]

    def evaluate_together(self, requests: Sequence[tuple[Request, Context]]) -> list[Observation]:
        """Evaluate several designs, whose answers to a batch are computed one after another where rows have one each.

        Each gets the observation that it gets alone; the time is divided equally.
        """
        began, network = time.perf_counter(), self._placed
        cards, prepared = [card_of(request) for request, _ in requests], network.prepared
        models = [network.extracted(card) for card in cards]
        with threads(1):
            if kind_of(prepared.task).answer is None:
                rows = len(prepared.validation.examples)
                found: list[_Scored] = [(judge(one, prepared, prepared.validation), {}, rows) for one in models]
            else:
                found = self._raced(models, requests)
        seconds = (time.perf_counter() - began) / len(requests)
        for metrics, _, _ in found:
            require_finite_scores(metrics, 0)
        return [
            Observation(metrics, self._spent(seconds, card, rows), artifacts)
            for card, (metrics, artifacts, rows) in zip(cards, found, strict=True)
        ]

    def _raced(self, models: Sequence[TaskModel], requests: Sequence[tuple[Request, Context]]) -> list[_Scored]:
        """Let models race, each against its rival."""
        prepared = self._placed.prepared
        deciding = metric(prepared.task.metric)
        sign = 1 if deciding.direction == "max" else -1
        rivals = [None if self.rules is None else self._rival(card_of(one), context) for one, context in requests]
        ran = races(
            lambda places, rows: answers(
                [models[place] for place in places], prepared, prepared.validation, self._rows[rows]
            ),
            self._truths,
            [None if rival is None else rival.answers for rival in rivals],
            lambda found, truth: sign * deciding.compute(found, truth),
            self.rules,
        )
        return [
            (*self._scored(one, rival, card_of(request), context), len(one.rows))
            for one, rival, (request, context) in zip(ran, rivals, requests, strict=True)
        ]

    def _scored(
        self, ran: RaceResult, rival: Rival | None, card: Card, context: Context
    ) -> tuple[Mapping[str, float], dict[str, str]]:
        prepared, truth = self.network.prepared, self._truths
        found = compared(prepared, ran.answers, truth[ran.rows])
        if ran.whole:
            return found, _kept(ran.answers, card, context)
        assert rival is not None
        assert rival.trial.observation is not None
        rival_scores = compared(prepared, rival.answers[ran.rows], truth[ran.rows])
        known = rival.trial.observation.metrics
        behind = {name: known[name] + found[name] - rival_scores[name] for name in found}
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

    def _spent(self, seconds: float, card: Card, rows: int) -> Spent:
        length = round(float(self.network.prepared.validation.examples.lengths.mean()))
        return Spent(seconds, 0, rows * macs(card, max(length, 1)))


def _kept(found: Answers, card: Card, context: Context) -> dict[str, str]:
    """Store the answers to all rows, for later trials to race against."""
    if context.folder is None:
        return {}
    name, file = f"{ANSWERS}/{card.digest[:32]}.npy", io.BytesIO()
    np.save(file, found, allow_pickle=False)
    write_file(context.folder / name, file.getvalue())
    return {ANSWERS: name}


def _read_answers(trial: Trial, context: Context, rows: int) -> Answers | None:
    """Read the answers of a trial to N rows; None where they are missing or damaged."""
    assert trial.observation is not None
    if context.folder is None:
        return None
    try:
        found: Answers = np.load(context.folder / trial.observation.artifacts[ANSWERS], allow_pickle=False)
    except (OSError, ValueError, EOFError, SyntaxError, TokenError):  # the last two for a damaged header
        return None
    return found if found.shape == (rows,) else None
