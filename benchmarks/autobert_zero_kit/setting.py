"""What is searched and trained, and for how long: everything that decides a result beside the design and the seed."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from formwright.core.rng import derive
from formwright.evaluate.bi_branch import BiBranch
from formwright.evaluate.inherited import Pretraining
from formwright.evaluate.training import Trainer
from formwright.pipeline.task_choice import TrainingChoice
from formwright.space import Space
from formwright.space.zoo.autobert_zero import KERNELS, autobert_zero
from formwright.supernet.branches import Branches
from formwright.tasks import load_task
from formwright.tasks.task import Task
from formwright.train.fit import Training

LAYERS, HEADS, HEAD_WIDTH, LARGEST, VOCABULARY = 2, 4, 16, 9, 1_000
LENGTH = 64
RATE = 3e-3  # with few steps, designs can be told apart sooner than at 0.002, the rate of studies


def nano_space(layers: int = LAYERS) -> Space:
    """Give the space: that of the recipe with half as many layers, so that a design is trained in seconds."""
    return autobert_zero("autobert-zero-bench", layers, HEADS, HEAD_WIDTH, LARGEST, KERNELS[:-1], VOCABULARY)


_SEARCH = ("task", "trials", "short", "batch")
# what of the setting decides each kind of runs; a change of anything else leaves them as they are
_DECIDES = {
    "search": _SEARCH,
    "long": ("task", "long", "rows", "batch"),
    "curve": (*_SEARCH, "curve", "look", "rows"),  # it begins with what a search left
}


@dataclass(frozen=True)
class Steps:
    """How long a design is pretrained and then fine-tuned."""

    pretraining: int
    tuning: int


@dataclass(frozen=True)
class Nano:
    """The builtin task and all that is trained on it: `short` in a search, `long` to know what a design is worth.

    The task was chosen among seven of mini-glue, on validation, because designs differ soonest on it: after the `short`
    steps a block of convolution and attention had 0.82 and two convolutions 0.65 (one seed), where on mini-glue/sst2
    most designs still guess. So the choice itself leans towards hybrids over convolutions alone.
    `curve` are the steps of pretraining along which losses with and without shared weights are compared, on `rows`
    validation rows, every `look` steps.
    """

    task: str = "mini-glue/wnli"
    trials: int = 24
    short: Steps = Steps(40, 120)
    long: Steps = Steps(120, 480)
    curve: int = 120
    look: int = 10
    rows: int = 256
    batch: int = 64

    @property
    def seen(self) -> Task:
        return load_task(self.task)

    def training(self, steps: int, decay: str = "linear") -> Training:
        return TrainingChoice(steps, self.batch, RATE, decay=decay, length=LENGTH).make()

    def trainer(self, steps: Steps) -> Trainer:
        return Trainer(self.seen, self.training(steps.tuning))

    def pretraining(self, steps: Steps) -> Pretraining:
        return Pretraining(self.training(steps.pretraining))

    def evaluator(self, *, shared: bool) -> BiBranch:
        """Give what judges a design in a search."""
        space = nano_space()
        branches = Branches.of(space.card(space.sample(derive(0, "branches"))))
        return BiBranch(self.trainer(self.short), self.pretraining(self.short), branches, from_scratch=not shared)


@dataclass(frozen=True)
class Real:
    """Pretraining on WikiText-2 and fine-tuning on two tasks of GLUE, for designs of `width`."""

    width: int = 64
    vocabulary: int = 4_000
    words: int = 28  # of a row of text: about as long as a sentence of the tasks
    length: int = 48
    steps: Steps = Steps(1_500, 600)
    batch: int = 32
    rate: float = 1e-3
    tasks: tuple[str, ...] = ("glue/sst2", "glue/cola")
    rows: int = 20_000  # of a training set
    texts: int | None = None  # rows of WikiText-2, all where None

    def training(self, steps: int) -> Training:
        return TrainingChoice(steps, self.batch, self.rate, warmup=0.1, length=self.length).make()


@dataclass(frozen=True)
class Setting:
    """Everything but seeds: the designs trained long beside those of a search, the curves, and both trainings."""

    nano: Nano = field(default_factory=Nano)
    real: Real = field(default_factory=Real)
    ranked: int = 12  # of each search, those whose order is compared with that of long trainings
    curves: int = 4  # designs for each seed
    retrained: int = 2  # seeds for every design that a search found

    def facts(self, kind: str) -> dict[str, Any]:
        """Give, as JSON data, what decides the results of one kind of runs."""
        if kind == "real":
            facts = asdict(self.real)
        else:
            nano, space = asdict(self.nano), (LAYERS, HEADS, HEAD_WIDTH, LARGEST, VOCABULARY)
            # a long training is named by its design, and so does not depend on the space
            facts = {name: nano[name] for name in _DECIDES[kind]} | {"rate": RATE, "length": LENGTH}
            facts |= {} if kind == "long" else {"space": space}
        data: dict[str, Any] = json.loads(json.dumps(facts))
        return data

    def digest(self, kind: str) -> str:
        """Name what decides the results of one kind of runs."""
        return hashlib.sha256(json.dumps(self.facts(kind), sort_keys=True).encode()).hexdigest()[:8]


def tiny() -> Setting:
    """Give a setting in which every part runs in seconds and shows nothing."""
    nano = Nano(trials=5, short=Steps(1, 1), long=Steps(1, 1), curve=2, look=1, rows=16, batch=4)
    real = Real(vocabulary=300, steps=Steps(2, 1), batch=4, rows=20, texts=40)
    return replace(Setting(), nano=nano, real=real, ranked=3, curves=1, retrained=1)
