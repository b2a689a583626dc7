"""Pretrain a card before it is fine-tuned, unless a relative can spare it that."""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from torch import Tensor

from formwright.arch.card import Card
from formwright.core.errors import IllegalInput
from formwright.core.records import Observation, Request, Spent
from formwright.evaluate.context import Context
from formwright.evaluate.inherited import Inherited, WeightsLost
from formwright.evaluate.training import Start, Trainer, card_of, macs_of_steps, weights_of
from formwright.nn.task_model import TaskModel
from formwright.tasks.rows import PlainText
from formwright.tasks.task import Task
from formwright.train.fit import Run, Training, fresh_model, with_weights
from formwright.train.loop import Saving
from formwright.train.prepare import Prepared, encode_for, prepare
from formwright.train.pretrain import plain_text, pretrain

PRETRAINED = "pretrained"  # the name of the artifact
LOST = "lost"  # and of the one that names a relative whose weights could not be read
_SAVE_EVERY = 500  # steps
_WITHOUT = ("image-classification", "causal-lm", "seq2seq-lm")  # tasks of models that do not fill in words


@dataclass(frozen=True)
class Pretraining:
    """Say how cards learn to fill in hidden words of a text before they learn a task.

    Without a text it is that of the task's own training rows. Its words are cut by the task's tokeniser. Where there is
    a folder, a pretraining that was interrupted goes on from the checkpoint it left there.
    """

    training: Training
    text: PlainText | None = None
    folder: Path | None = None

    def start(self, after_step: Callable[[int, float], None] | None = None) -> Start:
        """Give the function that pretrains a card and puts the head of a task on it, with the seed of that training."""

        def pretrained(card: Card, prepared: Prepared, training: Training) -> TaskModel:
            weights = self.learnt(card, prepared, training.recipe.seed, after_step)
            return with_weights(fresh_model(card, prepared, training), weights)

        return pretrained

    def learnt(
        self,
        card: Card,
        prepared: Prepared,
        seed: int,
        after_step: Callable[[int, float], None] | None = None,
        model: TaskModel | None = None,
    ) -> Mapping[str, Tensor]:
        """Pretrain a card and give the weights of its transformer; a `model` to begin with is trained in place."""
        text, training = self._text(prepared), self._seeded(seed)
        saving = None
        if self.folder is not None:
            begun = b"" if model is None else weights_of(model)
            saving = Saving(self.folder / _key(card, prepared, text, training, begun), _SAVE_EVERY)
        run = Run(saving, after_step=after_step)
        return pretrain(card, text, prepared.text_tokeniser, training, run, model=model)[0]

    def spent(self, card: Card, prepared: Prepared, seed: int) -> Spent:
        """Account for the steps of pretraining a card; the seconds are those of the evaluation it is a part of."""
        recipe = self._seeded(seed).recipe
        encoded = encode_for(card, self._text(prepared), prepared.text_tokeniser, self.training.length)
        return Spent(0.0, recipe.steps, macs_of_steps(card, encoded.tokens.lengths, recipe, recipe.steps))

    def _text(self, prepared: Prepared) -> PlainText:
        return self.text if self.text is not None else plain_text(prepared.train.rows)

    def _seeded(self, seed: int) -> Training:
        return replace(self.training, recipe=replace(self.training.recipe, seed=seed))


def _key(card: Card, prepared: Prepared, text: PlainText, training: Training, begun: bytes) -> str:
    """Name a pretraining by everything that decides it: a checkpoint of another one is not gone on with."""
    facts = json.dumps((card.digest, prepared.digests, text.digest, asdict(training)), sort_keys=True)
    return hashlib.sha256(facts.encode() + begun).hexdigest()[:32]


@dataclass(frozen=True)
class Pretrained:
    """Score a card by fine-tuning it, from the weights of a relative or else after pretraining it.

    A relative is a finished trial as in `Inherited`: at least a share of the card's layers, counted from the input, are
    layers of the relative too. This is how FlexiBERT (Tuli et al. 2022, section 3.3.3) evaluates a design. The artifact
    `relative` says which trial gave the weights, or else `pretrained` after how many steps of pretraining the card was
    fine-tuned. What was spent is the sum of both, and so are the seconds. A card is pretrained too where the weights of
    its relative cannot be read, which the artifact `lost` then names.
    """

    inherited: Inherited
    pretraining: Pretraining

    def __post_init__(self) -> None:
        """Refuse a task without words to fill in."""
        refuse_without_words(self._trainer.task)

    @property
    def _trainer(self) -> Trainer:
        return self.inherited.trainer

    def evaluate(self, request: Request, context: Context) -> Observation:
        """Train the card of a request and judge it on validation."""
        lost: dict[str, str] = {}
        try:
            found = self.inherited.transferred(request, context)
        except WeightsLost as error:  # a damaged file costs the time of pretraining, not every design that is related
            found, lost = None, {LOST: str(error.number)}
        found = found or after_pretraining(self._trainer, self.pretraining, request, context)
        return replace(found, artifacts={**found.artifacts, **lost})


def after_pretraining(trainer: Trainer, pretraining: Pretraining, request: Request, context: Context) -> Observation:
    """Pretrain the card of a request from fresh weights, fine-tune it and judge it on validation."""
    found = trainer.observe(request, context, pretraining.start(context.after_step))
    card, spent = card_of(request), found.spent
    prepared = prepare(trainer.task, card, trainer.training.length, trainer.tokeniser)
    more = pretraining.spent(card, prepared, context.seed)
    whole = Spent(spent.seconds, spent.steps + more.steps, spent.macs + more.macs)
    return Observation(found.metrics, whole, {**found.artifacts, PRETRAINED: str(more.steps)})


def refuse_without_words(task: Task) -> None:
    """Refuse, before anything is trained, a task for which no encoder of text can be pretrained."""
    if task.kind in _WITHOUT:
        raise IllegalInput(
            f"designs for the task {task.name} ({task.kind}) cannot be pretrained: pretraining fills in hidden words, "
            "which needs an encoder of text"
        )
