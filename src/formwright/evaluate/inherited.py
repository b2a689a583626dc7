"""Train a card from a relative's weights."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from formwright.arch.card import Card
from formwright.arch.overlap import overlap_fraction
from formwright.core.errors import EvaluationFailed, IllegalInput
from formwright.core.records import Observation, Request, Trial
from formwright.evaluate.context import Context
from formwright.evaluate.training import WEIGHTS, Trainer, card_of
from formwright.nn.inherit import Rule, extract, inherit
from formwright.nn.task_model import TaskModel
from formwright.train.fit import Training, head_of, start_at_mean
from formwright.train.prepare import Prepared


@dataclass(frozen=True)
class Inherited:
    """Score a card by training it from the weights of the finished trial that it shares most with.

    Only trials whose weights were kept count, and only when the overlap fraction is at least `least`; otherwise
    training starts fresh. Weights that were kept and cannot be read fail the evaluation. `rule` is how weights are
    carried, as in `formwright.nn.inherit`. The observation says in its artifact `relative` which trial gave the
    weights.
    """

    trainer: Trainer
    least: float = 0.8
    rule: Rule = "identical"

    def __post_init__(self) -> None:
        """Refuse a share that is none."""
        if not 0 <= self.least <= 1:
            raise IllegalInput(f"the least overlap is a share from 0 to 1, not {self.least}")

    def evaluate(self, request: Request, context: Context) -> Observation:
        """Train the card of a request and judge it on validation."""
        card = card_of(request)
        relative = self._relative(card, request.parent, context)
        if relative is None or context.folder is None:
            return self.trainer.observe(request, context)
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
        """Find the finished trial that shares most; of equals the parent, then the latest."""
        shares = [
            (overlap_fraction(card, card_of(trial.request)), trial.number == parent, trial.number, trial)
            for trial in context.history.finished
            if trial.observation is not None and WEIGHTS in trial.observation.artifacts
        ]
        near = [entry for entry in shares if entry[0] >= self.least]
        return max(near, key=lambda entry: entry[:3])[3] if near else None


def _weights(trial: Trial, folder: Path) -> Mapping[str, Tensor]:
    assert trial.observation is not None
    path = folder / trial.observation.artifacts[WEIGHTS]
    try:
        return load_file(path)
    except (OSError, SafetensorError) as error:
        raise EvaluationFailed(f"cannot inherit from trial {trial.number}: cannot read {path}: {error}") from None
