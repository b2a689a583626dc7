"""Train a card from a relative's weights."""

import hashlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load
from torch import Tensor

from formwright.arch.card import Card
from formwright.arch.overlap import overlap_fraction
from formwright.core.errors import EvaluationFailed, IllegalInput
from formwright.core.records import Observation, Request, Trial
from formwright.evaluate.context import Context
from formwright.evaluate.training import SHA256, WEIGHTS, Trainer, card_of
from formwright.nn.inherit import Rule, extract, inherit
from formwright.nn.task_model import TaskModel
from formwright.train.fit import Training, head_of, start_at_mean
from formwright.train.prepare import Prepared


class WeightsLost(EvaluationFailed):
    """Say that the weights of a relative, which has a `number`, cannot be read any more."""

    def __init__(self, number: int, reason: str) -> None:
        super().__init__(f"cannot inherit from trial {number}: {reason}")
        self.number = number


@dataclass(frozen=True)
class Inherited:
    """Score a card by training it from the weights of the finished trial that it shares most with.

    Only trials whose weights were kept count, and only when the overlap fraction is at least `least`; otherwise
    training starts fresh. So it does where a trial has nothing to give: no layer, and another embedding. Weights that
    were kept and cannot be read fail the evaluation. `rule` is how weights are carried, as in `formwright.nn.inherit`.
    The observation says in its artifact `relative` which trial gave the weights.

    Of trials that share equally much, the nearest gives its weights where a `distance` of two cards, the new one and
    that of a trial, is given; a trial at an infinite distance counts as no relative at all. With the distances of
    `formwright.search.neighbours.Nearness` this is the rule of FlexiBERT (Tuli et al. 2022, section 3.3.3).
    """

    trainer: Trainer
    least: float = 0.8
    rule: Rule = "identical"
    distance: Callable[[Card, Card], float] | None = None

    def __post_init__(self) -> None:
        """Refuse a share that is none."""
        if not 0 <= self.least <= 1:
            raise IllegalInput(f"the least overlap is a share from 0 to 1, not {self.least}")

    def evaluate(self, request: Request, context: Context) -> Observation:
        """Train the card of a request and judge it on validation."""
        return self.transferred(request, context) or self.trainer.observe(request, context)

    def transferred(self, request: Request, context: Context) -> Observation | None:
        """Train the card of a request from a relative's weights; None where no trial is related closely enough."""
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
        """Find the finished trial that shares most; of equals the nearest, then the parent, then the latest."""
        kept = [
            (trial, card_of(trial.request))
            for trial in context.history.finished
            if trial.observation is not None and WEIGHTS in trial.observation.artifacts
        ]
        shares = [(overlap_fraction(card, other), trial, other) for trial, other in kept]
        near = [
            (share, -self._distance(card, other), trial.number == parent, trial.number, trial)
            for share, trial, other in shares
            if share >= self.least and (share or self._gives_without_layers(card, other))
        ]
        related = [entry for entry in near if entry[1] > -math.inf]
        return max(related, key=lambda entry: entry[:4])[4] if related else None

    def _gives_without_layers(self, card: Card, other: Card) -> bool:
        """Tell whether a card that shares no layer, which a `least` of 0 lets through, has weights to give."""
        return self.rule == "slice" or other.stacks[0].embedding == card.stacks[0].embedding

    def _distance(self, card: Card, other: Card) -> float:
        return self.distance(card, other) if self.distance is not None else 0.0


def _weights(trial: Trial, folder: Path) -> Mapping[str, Tensor]:
    assert trial.observation is not None
    kept = trial.observation.artifacts
    path = folder / kept[WEIGHTS]
    try:
        content = path.read_bytes()
        if SHA256 in kept and hashlib.sha256(content).hexdigest() != kept[SHA256]:
            raise WeightsLost(trial.number, f"{path} is not as it was written: its SHA-256 is another")
        return load(content)
    except (OSError, SafetensorError) as error:
        raise WeightsLost(trial.number, f"cannot read {path}: {error}") from None
