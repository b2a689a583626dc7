"""Bi-branch evaluation: short pretraining from weights that all trials of a study share, then fine-tuning.

The log is the only state of a study, so the store of shared weights is derived from it: every finished trial writes one
file, and the store of an evaluation is the fresh store of the study's seed, overwritten by the files of all finished
trials in its history in the order of their numbers. That history is the one its request was made from, which the log
can reproduce at any time. Hence:

- A study with one worker that was killed and resumed starts every trial from the same bytes as if it had not been.
- Workers need no lock: they only add files. Whoever finishes first, the store after all of them is the same. A trial
  does not see those that were running when it was proposed.
- A trial that failed, or whose worker died, is in no store.

Files are named by their content, so that a damaged one is noticed before it is used, and its trial can be pretrained
again: the name shows whether the result is the same. They are synced to disk before the log mentions them. A trial
writes only the tensors of its design. No copy of a store is kept: each tensor is read from the last file that has it.
"""

import hashlib
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from formwright.arch.card import Card
from formwright.core.errors import EvaluationFailed, IllegalInput
from formwright.core.files import write_whole
from formwright.core.records import History, Observation, Request, Spent, Trial
from formwright.core.rng import derive
from formwright.evaluate.context import Context, card_of
from formwright.evaluate.inherited import PRETRAINED, Pretraining, after_pretraining, require_text_task
from formwright.evaluate.training import OUTSIDE, Trainer
from formwright.nn.task_model import TaskModel
from formwright.supernet.branches import (
    HEAD,
    Branches,
    BranchStore,
    Weights,
    folded,
    fresh,
    taken,
    to_train,
    weights_of,
    without_matrices,
    written,
)
from formwright.train.fit import Training, fresh_model, with_weights
from formwright.train.loop import enough_memory
from formwright.train.prepare import Prepared, prepare

BRANCHES = "branches"  # the name of the artifact, and of its folder
_DIGITS = 32  # of a digest, in the name of a file


def store_after(fresh: BranchStore, history: History, folder: Path) -> BranchStore:
    """Return the store that the finished trials of a history leave; trials without shared weights do not count."""
    return folded(fresh, [_read(trial, folder) for trial in sharing(history)])


def sharing(history: History) -> list[Trial]:
    """List the finished trials that stored shared weights, in the order of their numbers."""
    return [trial for trial in history.finished if trial.observation and BRANCHES in trial.observation.artifacts]


def is_whole(trial: Trial, folder: Path) -> bool:
    """Return whether the file that a trial left exists and is unchanged."""
    path = _path(trial, folder)
    try:
        stat = path.stat()
        return _has_its_content(path, stat.st_size, stat.st_mtime_ns)
    except OSError:
        return False


def keep(writes: Weights, folder: Path) -> str:
    """Write the shared weights of a trial to a file, and give its name in the folder; an identical file is kept."""
    content = _content(writes)
    name = _name(content)
    path = folder / name
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if not (path.is_file() and path.read_bytes() == content):
            write_whole(path, content)
            for one in (path, path.parent):  # both reach the disk before the log mentions the file
                handle = os.open(one, os.O_RDONLY)
                os.fsync(handle)
                os.close(handle)
    except OSError as error:
        raise IllegalInput(f"cannot write {path}: {error.strerror or error}") from error
    return name


def put_back(trial: Trial, writes: Weights, folder: Path) -> None:
    """Restore the file of a trial if it held these weights; otherwise do nothing."""
    assert trial.observation is not None
    if _name(_content(writes)) == trial.observation.artifacts[BRANCHES]:
        keep(writes, folder)


def _read(trial: Trial, folder: Path) -> "_File":
    path = _path(trial, folder)
    why = f"{path} is damaged" if path.exists() else f"there is no {path}"
    try:
        if is_whole(trial, folder):
            return _File(path)
    except (OSError, SafetensorError) as error:
        why = f"cannot read {path}: {error}"
    raise EvaluationFailed(
        f"cannot start from the weights that trial {trial.number} left: {why}. Later trials need them: put the file "
        "back from a copy of the study, then resume it, or start the study again in another folder"
    )


def _path(trial: Trial, folder: Path) -> Path:
    assert trial.observation is not None
    return folder / trial.observation.artifacts[BRANCHES]


def _content(writes: Weights) -> bytes:
    return save({name: tensor.contiguous() for name, tensor in sorted(writes.items())}, {"format": "pt"})


def _name(content: bytes) -> str:
    return f"{BRANCHES}/{_digest(content)}.safetensors"


@lru_cache(maxsize=1 << 14)
def _has_its_content(path: Path, size: int, time: int) -> bool:
    """Return whether a file matches the digest in its name; cached per process."""
    return path.stem == _digest(path.read_bytes())


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:_DIGITS]


class _File(Mapping[str, Tensor]):
    """The tensors of a file, each read when it is asked for; the file is not kept open in between."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with safe_open(path, framework="pt") as file:
            self._names = tuple(file.keys())

    def __getitem__(self, name: str) -> Tensor:
        with safe_open(self._path, framework="pt") as file:
            tensor: Tensor = file.get_tensor(name)
        return tensor

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


VERSION = "version"  # the artifact that says how many trials the shared weights were from


@dataclass(frozen=True)
class BiBranch:
    """Score a card by fine-tuning it after some steps of pretraining from the weights of earlier trials.

    This is how AutoBERT-Zero (Gao et al. 2022, section 3.2) evaluates a design. The shared weights are those of masked
    language modelling: a card starts from them, is pretrained for the steps of `pretraining`, and stores the result for
    later trials as the artifact `branches`. Then it is fine-tuned with a new head and evaluated on validation. The
    fine-tuned weights are discarded: sharing them would make a score depend on the number of earlier trials.

    Every pretraining masks other words, drawn from the study's seed and the version of the store, because a store that
    saw the same masks repeatedly would memorise them. Fine-tuning is the same for all.

    A damaged or missing file of an earlier trial is recomputed by pretraining its card again, where the history
    determines its initial weights: always in a study with one worker.

    With `from_scratch` nothing is shared: every card is pretrained from fresh weights, for as many steps.
    """

    trainer: Trainer
    pretraining: Pretraining
    branches: Branches
    from_scratch: bool = False

    def __post_init__(self) -> None:
        require_text_task(self.trainer.task)

    def evaluate(self, request: Request, context: Context) -> Observation:
        if self.from_scratch:
            return after_pretraining(self.trainer, self.pretraining, request, context)
        began, card, folder = time.perf_counter(), card_of(request), _folder(context)
        prepared = prepare(self.trainer.task, card, self.trainer.training.length, self.trainer.tokeniser)
        with enough_memory(OUTSIDE):
            store = self.store(context)
            learnt = self._learnt(store, card, prepared, context)

        def start(card: Card, prepared: Prepared, training: Training) -> TaskModel:
            below = "transformer."  # the head is new
            plain = {name: tensor for name, tensor in without_matrices(learnt).items() if name.startswith(below)}
            weights = {name.removeprefix(below): tensor for name, tensor in plain.items()}
            return with_weights(fresh_model(card, prepared, training), weights)

        found = self.trainer.observe(request, replace(context, folder=None), start)
        more = self.pretraining.spent(card, prepared, seed_of_words(store, context))
        spent = Spent(time.perf_counter() - began, found.spent.steps + more.steps, found.spent.macs + more.macs)
        left = {BRANCHES: keep(written(card, learnt), folder), VERSION: str(store.version)}
        return Observation(found.metrics, spent, {**left, PRETRAINED: str(more.steps)})

    def store(self, context: Context) -> BranchStore:
        for trial in sharing(context.history):
            if not is_whole(trial, _folder(context)):
                self._mend(trial, context)
        training = self.pretraining.training
        first = fresh(self.branches, context.seed, training.settings, training.spread)
        return store_after(first, context.history, _folder(context))

    def _mend(self, trial: Trial, context: Context) -> None:
        """Pretrain the card of a trial again if that reproduces its weights; otherwise reading the store fails."""
        assert trial.observation is not None
        before = [one for one in context.history.trials if one.number < trial.number]
        earlier = replace(context, history=History(tuple(before)))
        if str(len(sharing(earlier.history))) != trial.observation.artifacts.get(VERSION):
            return  # it ran in parallel with others, and which is unknown
        card = card_of(trial.request)
        prepared = prepare(self.trainer.task, card, self.trainer.training.length, self.trainer.tokeniser)
        learnt = self._learnt(self.store(earlier), card, prepared, earlier)
        put_back(trial, written(card, learnt), _folder(context))

    def _learnt(self, store: BranchStore, card: Card, prepared: Prepared, context: Context) -> Weights:
        model = to_train(card, taken(store, card), HEAD, self.pretraining.training.settings)
        self.pretraining.learnt(card, prepared, seed_of_words(store, context), context.after_step, model)
        weights = weights_of(model)
        for name, tensor in weights.items():
            if not bool(torch.isfinite(tensor).all()):
                raise EvaluationFailed(f"pretraining left NaN or infinity in {name}; lower the learning rate")
        return weights


def _folder(context: Context) -> Path:
    if context.folder is None:
        raise IllegalInput("sharing weights between trials needs a folder to keep them in; give the context one")
    return context.folder


def seed_of_words(store: BranchStore, context: Context) -> int:
    """Return the seed of the masked words of a pretraining; it differs for every version of the store."""
    return int(derive(context.seed, "shared weights", store.version).integers(1 << 62))


@dataclass(frozen=True)
class FromStore:
    """Take the weights of a card from a store, continue pretraining, and add a new task head.

    This is the start of AutoBERT-Zero* (Gao et al. 2022, Table 2: "initialized from the supernet"). From here on the
    model shares nothing, so each kernel is stored with its matrix applied, as in a model with fresh weights: the two
    differ in their initial weights only. `seed` determines the masked words.
    """

    store: BranchStore
    pretraining: Pretraining
    seed: int

    def __call__(self, card: Card, prepared: Prepared, training: Training) -> TaskModel:
        plain = without_matrices(taken(self.store, card))
        model = to_train(card, plain, HEAD, self.pretraining.training.settings)
        weights = self.pretraining.learnt(card, prepared, self.seed, model=model)
        return with_weights(fresh_model(card, prepared, training), weights)
