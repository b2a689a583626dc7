"""Train a card briefly from weights that all designs of a study share."""

import time
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from formwright.arch.card import Card
from formwright.core.errors import EvaluationFailed, IllegalInput
from formwright.core.records import History, Observation, Request, Spent, Trial
from formwright.core.rng import derive
from formwright.evaluate.branch_files import BRANCHES, is_whole, keep, put_back, sharing, store_after
from formwright.evaluate.context import Context
from formwright.evaluate.pretrained import PRETRAINED, Pretraining, after_pretraining, refuse_without_words
from formwright.evaluate.training import OUTSIDE, Trainer, card_of
from formwright.nn.task_model import TaskModel
from formwright.supernet.branch_store import Store, Weights, fresh, taken, written
from formwright.supernet.branches import HEAD, Branches
from formwright.supernet.kernels import to_train, weights_of, without_matrices
from formwright.train.fit import Training, fresh_model, with_weights
from formwright.train.loop import enough_memory
from formwright.train.prepare import Prepared, prepare

VERSION = "version"  # the artifact that says how many trials the shared weights were from


@dataclass(frozen=True)
class BiBranch:
    """Score a card by fine-tuning it after some steps of pretraining that go on from the weights of earlier trials.

    This is how AutoBERT-Zero (Gao et al. 2022, section 3.2) evaluates a design. What is shared are weights that fill in
    words: a card starts from them, is pretrained for the steps of `pretraining`, and leaves the result to later trials
    as the artifact `branches`. Then it is fine-tuned with a fresh head, judged on validation, and its fine-tuned
    weights are forgotten: what they know of the task would let later trials begin with it, and a score depend on how
    many there were. `branch_files` says which trials a card starts from.

    Every pretraining hides other words, drawn by the study's seed and the version of the store, for a store that saw
    the same ones again and again would learn them by heart. Fine-tuning is the same for all.

    A file of an earlier trial that is damaged or gone is made again by pretraining its card once more, where the
    history tells what that began with: always in a study that one worker did.

    With `from_scratch` nothing is shared: every card is pretrained from fresh weights, for as many steps.
    """

    trainer: Trainer
    pretraining: Pretraining
    branches: Branches
    from_scratch: bool = False

    def __post_init__(self) -> None:
        """Refuse a task without words to fill in."""
        refuse_without_words(self.trainer.task)

    def evaluate(self, request: Request, context: Context) -> Observation:
        """Train the card of a request and judge it on validation."""
        if self.from_scratch:
            return after_pretraining(self.trainer, self.pretraining, request, context)
        began, card, folder = time.perf_counter(), card_of(request), _folder(context)
        prepared = prepare(self.trainer.task, card, self.trainer.training.length, self.trainer.tokeniser)
        with enough_memory(OUTSIDE):
            store = self.store(context)
            learnt = self._learnt(store, card, prepared, context)

        def start(card: Card, prepared: Prepared, training: Training) -> TaskModel:
            return with_weights(fresh_model(card, prepared, training), _of_transformer(learnt))

        found = self.trainer.observe(request, replace(context, folder=None), start)
        more = self.pretraining.spent(card, prepared, seed_of_words(store, context))
        spent = Spent(time.perf_counter() - began, found.spent.steps + more.steps, found.spent.macs + more.macs)
        left = {BRANCHES: keep(written(card, learnt), folder), VERSION: str(store.version)}
        return Observation(found.metrics, spent, {**left, PRETRAINED: str(more.steps)})

    def store(self, context: Context) -> Store:
        """Give the shared weights that an evaluation in this context starts from."""
        for trial in sharing(context.history):
            if not is_whole(trial, _folder(context)):
                self._mend(trial, context)
        training = self.pretraining.training
        first = fresh(self.branches, context.seed, training.settings, training.spread)
        return store_after(first, context.history, _folder(context))

    def _mend(self, trial: Trial, context: Context) -> None:
        """Pretrain the card of a trial again if that can give the weights it left; what cannot is told by the store."""
        assert trial.observation is not None
        before = [one for one in context.history.trials if one.number < trial.number]
        earlier = replace(context, history=History(tuple(before)))
        if str(len(sharing(earlier.history))) != trial.observation.artifacts.get(VERSION):
            return  # some of them were under way beside it, and nobody here knows which
        card = card_of(trial.request)
        prepared = prepare(self.trainer.task, card, self.trainer.training.length, self.trainer.tokeniser)
        learnt = self._learnt(self.store(earlier), card, prepared, earlier)
        put_back(trial, written(card, learnt), _folder(context))

    def _learnt(self, store: Store, card: Card, prepared: Prepared, context: Context) -> Weights:
        """Pretrain a card from a store and give all weights that it took, trained."""
        model = to_train(card, taken(store, card), HEAD, self.pretraining.training.settings)
        self.pretraining.learnt(card, prepared, seed_of_words(store, context), context.after_step, model)
        weights = weights_of(model)
        for name, tensor in weights.items():
            if not bool(torch.isfinite(tensor).all()):
                raise EvaluationFailed(f"pretraining left no number in {name}; lower the learning rate")
        return weights


def _folder(context: Context) -> Path:
    if context.folder is None:
        raise IllegalInput("sharing weights between trials needs a folder to keep them in; give the context one")
    return context.folder


def seed_of_words(store: Store, context: Context) -> int:
    """Give the seed of the words that a pretraining from a store hides: another one for every version of it."""
    return int(derive(context.seed, "shared weights", store.version).integers(1 << 62))


def _of_transformer(weights: Weights) -> Weights:
    """Give the weights below the head, as a plain model has them."""
    plain, above = without_matrices(weights), "transformer."
    return {name.removeprefix(above): tensor for name, tensor in plain.items() if name.startswith(above)}
