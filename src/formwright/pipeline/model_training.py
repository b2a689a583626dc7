"""How one model is trained: the options of a training, of pretraining and of distillation."""

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from formwright.core.errors import IllegalInput
from formwright.core.options import option
from formwright.pipeline.task_choice import TrainingChoice

if TYPE_CHECKING:
    from formwright.train.fit import Training
    from formwright.train.prepare import Prepared

_MOST_EPOCHS = 1e9


@dataclass(frozen=True)
class ModelTraining(TrainingChoice):
    """Say how one model is trained; None stands for what the data, or the weights that it starts from, decide."""

    steps: int | None = option(None, "training steps (default 300; many rows: one epoch, at most 3,000)", least=1)
    batch: int = option(32, "rows in a batch", least=1)
    learning_rate: float | None = option(
        None, "peak learning rate (default 0.001 from scratch, 0.0003 with pretraining, 0.00005 for a folder)"
    )
    warmup: float = option(0.1, "share of the steps during which the learning rate rises")
    length: int | None = option(None, "maximum number of tokens in a row (default: covers 95 % of the training rows)")
    dropout: float | None = option(
        None, "dropout rate (default 0 from scratch, 0.1 for a model's folder)", least=0, most=1
    )
    epochs: float | None = option(None, "passes over the training rows, instead of steps")
    accumulate: int = option(1, "batches whose gradients are averaged for one step", least=1)
    threads: int = option(1, "threads used for training", least=1, most=1024)

    def __post_init__(self) -> None:
        if self.steps is not None and self.epochs is not None:
            raise IllegalInput("give steps or epochs, not both")
        if self.epochs is not None and not 0 < self.epochs <= _MOST_EPOCHS:
            raise IllegalInput(f"epochs must be a number above 0, at most {_MOST_EPOCHS:g}, not {self.epochs}")

    def make(self, steps: int | None = None) -> "Training":
        made = super().make(steps)
        return replace(made, recipe=replace(made.recipe, accumulate=self.accumulate), threads=self.threads)

    def settled(self, prepared: "Prepared", seed: int, *, from_scratch: bool, pretrained: bool) -> "ModelTraining":
        """Give the training with every option settled that depends on the rows or on the model."""
        from formwright.train.hyperparameters import FRESH_DROPOUT, PRETRAINED_DROPOUT

        # with the higher rate of short trainings, masked-LM pretraining would learn little but how frequent words are
        rate = 5e-5 if not from_scratch else 3e-4 if pretrained else 1e-3
        dropout = FRESH_DROPOUT if from_scratch else PRETRAINED_DROPOUT
        return replace(
            self,
            steps=self._steps(prepared, seed),
            epochs=None,
            learning_rate=rate if self.learning_rate is None else self.learning_rate,
            dropout=dropout if self.dropout is None else self.dropout,
        )

    def _steps(self, prepared: "Prepared", seed: int) -> int:
        from formwright.train.hyperparameters import FINAL_EPOCHS, usual_last_steps, usual_steps
        from formwright.train.streams import Shuffled

        if self.steps is not None:
            return self.steps
        rows, size = len(prepared.train.examples), self.batch * self.accumulate
        if self.epochs is None:
            return usual_last_steps(usual_steps(self.default_steps, rows, size, FINAL_EPOCHS), rows, size)
        batches = self.epochs * Shuffled(prepared.train.examples.lengths, self.batch, seed).batches_per_epoch
        # the last step may reach into the next epoch; a float's last digit is not worth another batch
        return max(math.ceil(round(batches / self.accumulate, 6)), 1)


@dataclass(frozen=True)
class Judging:
    """Say how a model is evaluated while it is trained, and in the end.

    `beams` and `test` decide nothing of what is learned: a finished run may be evaluated again with others.
    """

    judge_every: int | None = option(
        None,
        "evaluate on the validation set every N steps (default: 20 times in all, or fewer; 0: at the end only)",
        least=0,
    )
    patience: int | None = option(
        None, "stop after N evaluations without an improvement (default 5, and not before half of the steps)", least=1
    )
    beams: int = option(1, "beams used to evaluate a model that generates text", extent=True, least=1)
    test: bool = option(False, "at the end, evaluate on the test rows once; this is recorded", extent=True)

    def __post_init__(self) -> None:
        if self.patience is not None and self.judge_every == 0:
            raise IllegalInput(
                "patience counts evaluations during training, and judge_every 0 (--judge-every) asks for none"
            )

    def settled(self, training: "Training", rows: int) -> "Judging":
        """Give how often a training is judged by `rows` validation rows, where the user left that open."""
        if self.judge_every is not None:
            return self
        usual = training.stopping_early(rows).judge_every
        if usual is None and self.patience is not None:
            raise IllegalInput(
                "patience counts evaluations during training, and there are none by default, because the validation "
                "set is large; give judge_every (--judge-every)"
            )
        return replace(self, judge_every=usual or 0)

    def applied(self, training: "Training", rows: int) -> "Training":
        """Give a training that is judged, stopped early, and keeps its best weights as these options say."""
        if not self.judge_every:
            return training
        early = replace(training.stopping_early(rows), judge_every=self.judge_every)
        return early if self.patience is None else replace(early, patience=self.patience, least=0)


@dataclass(frozen=True)
class WordPretraining:
    """Let a design without weights first learn to fill in masked words."""

    text: str = option("self", "the task whose text is learned from; `self` is that of the task")
    steps: int = option(1000, "pretraining steps", least=1)
    next_sentence: bool = option(False, "also predict which sentence follows which")


@dataclass(frozen=True)
class Distillation:
    """Let a model also learn from a teacher, the folder of a model that was fine-tuned on the task."""

    teacher: str = option(about="folder of the teacher")
    labels: float = option(0.5, "weight of the labels; the teacher's scores get the rest", least=0, most=1)
    hidden: float = option(1.0, "weight of the distance to the teacher's last hidden states", least=0)
