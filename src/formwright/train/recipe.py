"""How a model is trained: everything that, with the data and the card, decides the result."""

import math
from dataclasses import dataclass, fields
from typing import Literal, get_args

from formwright.core.errors import IllegalInput

Decay = Literal["linear", "cosine", "none"]
_MOST = 10**12  # beyond any real number of steps or rows
# where nobody says otherwise: small designs that start from fresh weights learn no better with dropout, and some hardly
# at all within their steps (the experiment is in docs/training.md); pretrained weights have that of BERT
FRESH_DROPOUT, PRETRAINED_DROPOUT = 0.0, 0.1
_LEAST = 100  # steps of a training, however few its rows are
_LONGEST = 3000  # steps that many rows are worth by default: minutes for a small design
TRIAL_EPOCHS, FINAL_EPOCHS = 10, 30  # that few rows are seen at most, in a trial and in the last training


def usual_steps(most: int, rows: int, batch: int, epochs: int = TRIAL_EPOCHS) -> int:
    """Give the default number of steps: `most`, but no more than `epochs` epochs of few rows, and at least 100."""
    return min(most, max(_LEAST, math.ceil(epochs * rows / batch)))


def usual_last_steps(steps: int, rows: int, batch: int) -> int:
    """Give the default number of steps of a last training: these, or an epoch where that is more, up to 3,000."""
    return max(steps, min(math.ceil(rows / batch), _LONGEST))


@dataclass(frozen=True)
class Recipe:
    """Hold the settings of AdamW with warm-up, decay, clipping and accumulation.

    `steps` counts updates of the weights; each averages the gradients of `accumulate` batches. `warmup` is a share of
    the steps. `beta2` is how slowly AdamW forgets the size of old gradients; 0.98 is RoBERTa's.
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

    def __post_init__(self) -> None:
        """Refuse settings that cannot train."""
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
        rates = 0 < self.learning_rate < math.inf and 0 <= self.weight_decay < math.inf
        if not (0 <= self.warmup < 1 and rates and self.clip > 0):
            raise IllegalInput(
                "warmup must lie in [0, 1), learning rate and clip above 0, weight decay not below 0, both rates "
                f"finite; got {self}"
            )

    def share(self, step: float) -> float:
        """Give the share of the schedule that is over before a step."""
        return step / self.steps

    def rate(self, step: float) -> float:
        """Give the learning rate of a step, counted from 0."""
        rise = math.ceil(self.steps * self.warmup)
        if step < rise:
            return self.learning_rate * (step + 1) / rise
        done = (step - rise) / max(self.steps - rise, 1)
        if self.decay == "linear":
            return self.learning_rate * (1 - done)
        return self.learning_rate * (1 + math.cos(math.pi * done)) / 2 if self.decay == "cosine" else self.learning_rate


@dataclass(frozen=True)
class Replanned(Recipe):
    """A recipe whose number of steps changed before step `since`, when the share `over` of its schedule was over.

    The rest of the schedule is spread over the steps that are left, so that the rate never jumps where the number of
    steps alone changes.
    """

    since: int = 0
    over: float = 0.0

    def share(self, step: float) -> float:
        """Give the share of the schedule that is over before a step."""
        return self.over + (1 - self.over) * (step - self.since) / max(self.steps - self.since, 1)

    def rate(self, step: float) -> float:
        """Give the learning rate of a step from `since` on."""
        return super().rate(self.share(step) * self.steps)


def replanned(recipe: Recipe, since: int, steps: int, learning_rate: float) -> Replanned:
    """Change the number of steps and the highest rate of a recipe before step `since`."""
    kept = {entry.name: getattr(recipe, entry.name) for entry in fields(Recipe)}
    return Replanned(**kept | {"steps": steps, "learning_rate": learning_rate}, since=since, over=recipe.share(since))
