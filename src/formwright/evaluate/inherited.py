"""Train a card from the weights of a related trial, or after pretraining it."""

import hashlib
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load
from torch import Tensor

from formwright.arch.card import Card
from formwright.arch.distance import overlap_fraction
from formwright.core.errors import EvaluationFailed, IllegalInput
from formwright.core.records import Observation, Request, Spent, Trial
from formwright.evaluate.context import Context, card_of
from formwright.evaluate.training import SHA256, WEIGHTS, Start, Trainer, macs_of_steps, weights_of
from formwright.nn.inherit import Rule, extract, inherit
from formwright.nn.task_model import TaskModel
from formwright.tasks.kind import kind_of
from formwright.tasks.rows import PlainText
from formwright.tasks.task import Task
from formwright.train.fit import Run, Training, fresh_model, head_of, start_at_mean, with_weights
from formwright.train.loop import Saving
from formwright.train.prepare import Prepared, encode_for, prepare
from formwright.train.pretrain import plain_text, pretrain


class WeightsLost(EvaluationFailed):
    """Raised when the weights of a relative, trial `number`, cannot be read."""

    def __init__(self, number: int, reason: str) -> None:
        super().__init__(f"cannot inherit from trial {number}: {reason}")
        self.number = number


@dataclass(frozen=True)
class Inherited:
    """Score a card by training it from the weights of the finished trial with the largest overlap.

    Only trials with stored weights count, and only when the overlap fraction is at least `least`; otherwise training
    starts from fresh weights, as it does where nothing can be transferred (no common layer, another embedding). Stored
    weights that cannot be read fail the evaluation. `rule` is how weights are transferred, as in
    `formwright.nn.inherit`. The observation names the source trial in its artifact `relative`.

    Of trials that share equally much, the nearest gives its weights where a `distance` of two cards, the new one and
    that of a trial, is given; a trial at an infinite distance counts as no relative at all. With the distances of
    `formwright.search.listing.Nearness` this is the rule of FlexiBERT (Tuli et al. 2022, section 3.3.3).
    """

    trainer: Trainer
    least: float = 0.8
    rule: Rule = "identical"
    distance: Callable[[Card, Card], float] | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.least <= 1:
            raise IllegalInput(f"the least overlap is a share from 0 to 1, not {self.least}")

    def evaluate(self, request: Request, context: Context) -> Observation:
        return self.transferred(request, context) or self.trainer.observe(request, context)

    def transferred(self, request: Request, context: Context) -> Observation | None:
        """Train the card of a request from a relative's weights; None where no trial has enough overlap."""
        card = card_of(request)
        relative = self._relative(card, request.parent, context)
        if relative is None or context.folder is None:
            return None
        weights = _weights(relative, context.folder)

        def start(card: Card, prepared: Prepared, training: Training) -> TaskModel:
            head = head_of(prepared.task)
            carried = inherit(weights, card_of(relative.request), card, self.rule, head)
            model = extract(carried, card, training.settings, head, training.recipe.seed, training.spread)
            assert isinstance(model, TaskModel)
            if "head.output.bias" in carried.missing:
                start_at_mean(model, prepared)
            return model

        found = self.trainer.observe(request, context, start)
        return Observation(found.metrics, found.spent, {**found.artifacts, "relative": str(relative.number)})

    def _relative(self, card: Card, parent: int | None, context: Context) -> Trial | None:
        """Return the trial with the largest overlap; ties go to the nearest, the parent, then the latest."""
        kept = [
            (trial, card_of(trial.request))
            for trial in context.history.finished
            if trial.observation is not None and WEIGHTS in trial.observation.artifacts
        ]
        shares = [(overlap_fraction(card, other), trial, other) for trial, other in kept]
        away = self.distance or (lambda *_: 0.0)
        near = [
            (share, -away(card, other), trial.number == parent, trial.number, trial)
            for share, trial, other in shares
            # one that shares no layer, possible with a `least` of 0, may have an embedding to give
            if share >= self.least
            and (share or self.rule == "slice" or other.stacks[0].embedding == card.stacks[0].embedding)
        ]
        related = [entry for entry in near if entry[1] > -math.inf]
        return max(related, key=lambda entry: entry[:4])[4] if related else None


def _weights(trial: Trial, folder: Path) -> Mapping[str, Tensor]:
    assert trial.observation is not None
    kept = trial.observation.artifacts
    path = folder / kept[WEIGHTS]
    try:
        content = path.read_bytes()
        if SHA256 in kept and hashlib.sha256(content).hexdigest() != kept[SHA256]:
            raise WeightsLost(trial.number, f"{path} is damaged: its SHA-256 is not the recorded one")
        return load(content)
    except (OSError, SafetensorError) as error:
        raise WeightsLost(trial.number, f"cannot read {path}: {error}") from None


PRETRAINED = "pretrained"  # the name of the artifact
LOST = "lost"  # and of the one that names a relative whose weights could not be read
_SAVE_EVERY = 500  # steps


@dataclass(frozen=True)
class Pretraining:
    """Masked-language-model pretraining of cards before they are fine-tuned on a task.

    The default text is that of the task's training rows, split by the task's tokeniser. With a folder, an interrupted
    pretraining resumes from its checkpoint.
    """

    training: Training
    text: PlainText | None = None
    folder: Path | None = None

    def start(self, after_step: Callable[[int, float], None] | None = None) -> Start:
        """Return the function that pretrains a card and adds the head of a task, with the seed of that training."""

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
        """Pretrain a card and give the weights of its transformer; a given `model` is trained in place."""
        text, training = self._text(prepared), self._seeded(seed)
        saving = None
        if self.folder is not None:
            # named by everything that determines the pretraining: only its own checkpoint is resumed
            facts = json.dumps((card.digest, prepared.digests, text.digest, asdict(training)), sort_keys=True)
            begun = b"" if model is None else weights_of(model)
            key = hashlib.sha256(facts.encode() + begun).hexdigest()[:32]
            saving = Saving(self.folder / key, _SAVE_EVERY)
        run = Run(saving, after_step=after_step)
        return pretrain(card, text, prepared.text_tokeniser, training, run, model=model)[0]

    def spent(self, card: Card, prepared: Prepared, seed: int) -> Spent:
        """Account for the steps of pretraining a card; seconds are counted by the evaluation."""
        recipe = self._seeded(seed).recipe
        encoded = encode_for(card, self._text(prepared), prepared.text_tokeniser, self.training.length)
        return Spent(0.0, recipe.steps, macs_of_steps(card, encoded.tokens.lengths, recipe, recipe.steps))

    def _text(self, prepared: Prepared) -> PlainText:
        return self.text if self.text is not None else plain_text(prepared.train.rows)

    def _seeded(self, seed: int) -> Training:
        return replace(self.training, recipe=replace(self.training.recipe, seed=seed))


@dataclass(frozen=True)
class Pretrained:
    """Score a card by fine-tuning it, from the weights of a related trial or else after pretraining.

    A relative is a finished trial as in `Inherited`: at least a share of the card's layers, counted from the input, are
    layers of the relative too. This is how FlexiBERT (Tuli et al. 2022, section 3.3.3) evaluates a design. The artifact
    `relative` says which trial gave the weights, or else `pretrained` after how many steps of pretraining the card was
    fine-tuned. What was spent is the sum of both. A card is also pretrained where the weights of its relative cannot be
    read; the artifact `lost` then names that trial.
    """

    inherited: Inherited
    pretraining: Pretraining

    def __post_init__(self) -> None:
        require_text_task(self.inherited.trainer.task)

    def evaluate(self, request: Request, context: Context) -> Observation:
        lost: dict[str, str] = {}
        try:
            found = self.inherited.transferred(request, context)
        except WeightsLost as error:  # a damaged file costs a pretraining, not the trial
            found, lost = None, {LOST: str(error.number)}
        found = found or after_pretraining(self.inherited.trainer, self.pretraining, request, context)
        return replace(found, artifacts={**found.artifacts, **lost})


def after_pretraining(trainer: Trainer, pretraining: Pretraining, request: Request, context: Context) -> Observation:
    """Pretrain the card of a request from fresh weights, fine-tune it and evaluate it on validation."""
    found = trainer.observe(request, context, pretraining.start(context.after_step))
    card, spent = card_of(request), found.spent
    prepared = prepare(trainer.task, card, trainer.training.length, trainer.tokeniser)
    more = pretraining.spent(card, prepared, context.seed)
    whole = Spent(spent.seconds, spent.steps + more.steps, spent.macs + more.macs)
    return Observation(found.metrics, whole, {**found.artifacts, PRETRAINED: str(more.steps)})


def require_text_task(task: Task) -> None:
    """Refuse, before any training, a task whose designs cannot be pretrained."""
    if not kind_of(task).pretrainable:
        raise IllegalInput(
            f"designs for the task {task.name} ({task.kind}) cannot be pretrained: pretraining fills in hidden words, "
            "which needs an encoder of text"
        )
