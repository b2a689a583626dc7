"""Training hyperparameters: with the data and the card they determine the result."""

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

from formwright.core.errors import IllegalInput, UnknownName
from formwright.core.registry import Registry

Decay = Literal["linear", "cosine", "none"]
_AUGMENT = "formwright.train.augment"
# changes of the inputs of training: `change(inputs, rng)` returns other inputs, drawn from the generator it is given.
# A `Kind` names those that suit its inputs
AUGMENTATIONS: Registry[Callable[..., Any]] = Registry(
    "augmentation", {"shift": f"{_AUGMENT}:shift", "flip": f"{_AUGMENT}:flip"}, "formwright.augmentations"
)
_MOST = 10**12  # beyond any real number of steps or rows
# defaults: small designs trained from scratch gain nothing from dropout, and some hardly learn with it (the experiment
# is in docs/training.md); pretrained weights use that of BERT
FRESH_DROPOUT, PRETRAINED_DROPOUT = 0.0, 0.1
_LEAST = 100  # minimum number of steps, however few the rows
_LONGEST = 3000  # maximum default number of steps for large data: minutes for a small design
TRIAL_EPOCHS, FINAL_EPOCHS = 10, 30  # maximum number of epochs over few rows, in a trial and in the final training


def usual_steps(most: int, rows: int, batch: int, epochs: int = TRIAL_EPOCHS) -> int:
    """Return the default number of steps: at most `most` and `epochs` epochs, at least 100."""
    return min(most, max(_LEAST, math.ceil(epochs * rows / batch)))


def usual_last_steps(steps: int, rows: int, batch: int) -> int:
    """Return the default number of steps of a final training: `steps`, or one epoch if that is more, up to 3,000."""
    return max(steps, min(math.ceil(rows / batch), _LONGEST))


@dataclass(frozen=True)
class Hyperparameters:
    """Hyperparameters of AdamW with warm-up, decay, gradient clipping and gradient accumulation.

    `steps` counts weight updates; each averages the gradients of `accumulate` batches. `warmup` is a share of the
    steps. The default `beta2` is that of RoBERTa. `augment` names changes of training inputs, separated by commas.
    """

    steps: int
    batch: int = 32
    learning_rate: float = 1e-3
    warmup: float = 0.1
    decay: Decay = "linear"
    weight_decay: float = 0.01
    clip: float = 1.0
    accumulate: int = 1
    beta2: float = 0.98
    seed: int = 0
    augment: str = ""

    @property
    def changes(self) -> tuple[str, ...]:
        """Return the names of the changes of training inputs, which `AUGMENTATIONS` has."""
        return tuple(name.strip() for name in self.augment.split(",") if name.strip())

    def __post_init__(self) -> None:
        if strange := [name for name in self.changes if name not in AUGMENTATIONS.names()]:
            raise UnknownName(AUGMENTATIONS.kind, strange[0], AUGMENTATIONS.names())
        least = {"steps": self.steps, "batch": self.batch, "accumulate": self.accumulate}
        for name, value in least.items():
            if value < 1:
                raise IllegalInput(f"{name} must be at least 1, not {value}")
            if value > _MOST:
                raise IllegalInput(f"{name} must be at most {_MOST:,}")
        if self.decay not in get_args(Decay):
            raise IllegalInput(f"decay is linear, cosine or none, not {self.decay!r}")
        if not 0 <= self.beta2 < 1:
            raise IllegalInput(f"beta2 must lie in [0, 1), not {self.beta2}")
        if not 0 <= self.warmup < 1:
            raise IllegalInput(f"warmup must lie in [0, 1), not {self.warmup}")
        if not 0 < self.learning_rate < math.inf:
            raise IllegalInput(f"the learning rate must be above 0 and finite, not {self.learning_rate}")
        if not 0 <= self.weight_decay < math.inf:
            raise IllegalInput(f"weight decay must be finite and not below 0, not {self.weight_decay}")
        if not self.clip > 0:
            raise IllegalInput(f"clip must be above 0, not {self.clip}")

    def share(self, step: float) -> float:
        """Return the share of the schedule that has passed before a step."""
        return step / self.steps

    def rate(self, step: float) -> float:
        """Return the learning rate of a step, counted from 0."""
        rise = math.ceil(self.steps * self.warmup)
        if step < rise:
            return self.learning_rate * (step + 1) / rise
        done = (step - rise) / max(self.steps - rise, 1)
        if self.decay == "linear":
            return self.learning_rate * (1 - done)
        return self.learning_rate * (1 + math.cos(math.pi * done)) / 2 if self.decay == "cosine" else self.learning_rate


@dataclass(frozen=True)
class ReplannedHyperparameters(Hyperparameters):
    """Hyperparameters whose number of steps changed at step `since`, after the share `over` of the schedule.

    The rest of the schedule is stretched over the remaining steps, so that the learning rate does not jump.
    """

    since: int = 0
    over: float = 0.0

    def share(self, step: float) -> float:
        """Return the share of the schedule that has passed before a step."""
        return self.over + (1 - self.over) * (step - self.since) / max(self.steps - self.since, 1)

    def rate(self, step: float) -> float:
        """Return the learning rate of a step from `since` on."""
        return super().rate(self.share(step) * self.steps)


def replanned(recipe: Hyperparameters, since: int, steps: int, learning_rate: float) -> ReplannedHyperparameters:
    """Change the number of steps and the peak learning rate from step `since` on."""
    kept = {entry.name: getattr(recipe, entry.name) for entry in fields(Hyperparameters)}
    return ReplannedHyperparameters(
        **kept | {"steps": steps, "learning_rate": learning_rate}, since=since, over=recipe.share(since)
    )
