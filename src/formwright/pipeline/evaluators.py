"""Ways to score a design, as parts with options: what the studies of the command line, files and Python name.

A part binds to a setting (task, training, space) and gives the evaluator that scores requests. It also says what the
last training of a delivered design begins with, because only it knows which weights its trials leave.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from formwright.core.errors import EvaluationFailed, IllegalInput
from formwright.core.options import Part, Stage, option
from formwright.core.protocols import Evaluator
from formwright.core.records import History, Observation, Request, Spent
from formwright.core.registry import Registry
from formwright.core.rng import derive
from formwright.evaluate.context import Context, card_of
from formwright.evaluate.proxies import PROXIES
from formwright.pipeline.plan import WorkAmount
from formwright.space.space import Space

if TYPE_CHECKING:
    from formwright.arch.card import Card
    from formwright.evaluate.bi_branch import BiBranch
    from formwright.evaluate.inherited import Pretraining
    from formwright.evaluate.training import Start, Trainer
    from formwright.pipeline.run import StageRun
    from formwright.supernet.branches import Branches
    from formwright.tasks.task import Task
    from formwright.tasks.tokeniser import Tokeniser
    from formwright.train.fit import Training

_HERE = "formwright.pipeline.evaluators"
_SAMPLED = 20  # designs of a space that are looked at before it is searched with shared branches
PRETRAINING = "pretraining"  # the folder, next to the runs of a last training
Weights = Literal["fresh", "shared"]

EVALUATORS: Registry[Any] = Registry(
    "evaluator",
    {
        "full": f"{_HERE}:TrainFully",
        "staged": f"{_HERE}:TrainInStages",
        "inherited": f"{_HERE}:InheritWeights",
        "pretrained": f"{_HERE}:PretrainFirst",
        "bi-branch": f"{_HERE}:ShareBranches",
        "proxy": f"{_HERE}:UntrainedScores",
        "shared": "formwright.pipeline.shared_evaluator:SharedSubnetworks",
        "function": "formwright.pipeline.function_evaluator:FunctionEvaluator",
    },
    "formwright.evaluators",
)


@dataclass(frozen=True, eq=False)
class Setting:
    """What a study gives its evaluator.

    `costs` are those that the search lowers, or else the parameters; `artifact` gives what another stage made.
    """

    space: Space
    seed: int
    task: "Task | None"
    training: "Training | None"
    costs: "tuple[Callable[[Card], float], ...]" = ()
    artifact: Callable[[Stage], Any] | None = None
    tokeniser: "Tokeniser | None" = None

    @cached_property
    def trainer(self) -> "Trainer":
        """Give what trains designs; refuse a study without a task."""
        from formwright.evaluate.training import Trainer

        if self.task is None or self.training is None:
            raise IllegalInput("this evaluator trains designs: give the study a task")
        return Trainer(self.task, self.training, self.tokeniser)

    def for_steps(self, steps: int) -> "Setting":
        """Give the setting with another number of training steps."""
        training = self.trainer.training
        return replace(self, training=replace(training, recipe=replace(training.recipe, steps=steps)))


class EvaluatorPart(Part):
    """Base class of ways to score designs.

    `READS_TRIALS` says that evaluations read what earlier trials kept, `TRAINS` that designs get a head for the task.
    `DELIVERS` are the weights that the last training of a design begins with by default. `COPIES` is how many times
    the size of its weights a trial leaves on disk.
    """

    READS_TRIALS: ClassVar[bool] = False
    TRAINS: ClassVar[bool] = True
    DELIVERS: ClassVar[Weights] = "fresh"
    COPIES: ClassVar[int] = 1

    @classmethod
    def registry(cls) -> Registry[Any]:
        return EVALUATORS

    def bind(self, setting: Setting) -> Evaluator:
        """Give the evaluator of a study."""
        raise TypeError(f"{type(self).__name__} binds to nothing")

    def metrics(self, task: "Task | None") -> tuple[str, ...] | None:
        """List the names of the scores that it gives; None where only an evaluation tells."""
        return None if task is None else task.metrics

    def contents(self) -> Mapping[str, Any]:
        """Give digests of what it reads from outside, by name; a study is not resumed where they changed."""
        return {}

    def least_length(self) -> int:
        """Give the least number of tokens that a row has where the data decide it."""
        from formwright.tasks.row_length import LEAST

        return LEAST

    def scores_design(self, run: "StageRun", card: "Card") -> bool:
        """Tell whether a design can be scored at all; others are not proposed."""
        return True

    def tokeniser(self, run: "StageRun") -> Any:
        """Give the tokeniser by which designs read text; None where the task's own does."""
        return None

    def trial_steps(self, steps: int) -> int:
        """Count the training steps of a trial, at most, where the training of the search has `steps`."""
        return steps

    def amounts(self, trials: int, run: "StageRun") -> dict[str, WorkAmount] | None:
        """Say how much a search of `trials` trials does, where the time of a trial is known before."""
        return None

    def speeds(self, run: "StageRun") -> dict[str, float]:
        """Time what a trial is made of, and what a delivered model is."""
        return {}

    def seconds(self, amounts: Mapping[str, int], speeds: Mapping[str, float], run: "StageRun") -> float:
        """Estimate how long all trials take, one after the other."""
        return 0.0

    def planned(self, amounts: Mapping[str, int], run: "StageRun") -> "EvaluatorPart":
        """Give the evaluator with planned amounts as its options."""
        return self

    def shares_weights(self) -> bool:
        """Tell whether `start` can begin with weights that the trials share."""
        return False

    def start(self, setting: Setting, steps: int, weights: Weights, folder: Path, history: History) -> "Start":
        """Give what the last training of a design, of `steps` steps, begins with; a pretraining is saved in `folder`.

        `setting` is that of the trials, `history` what they were, and their files are in the study's folder.
        """
        from formwright.train.fit import fresh_model

        if weights == "shared":
            raise IllegalInput(f"the evaluator {self.NAME} leaves no weights to begin with; deliver fresh ones")
        return fresh_model


@dataclass(frozen=True)
class TrainFully(EvaluatorPart):
    """Train every design from fresh weights to the end, whatever budget is asked for."""

    NAME: ClassVar[str] = "full"

    def bind(self, setting: Setting) -> Evaluator:
        return setting.trainer


@dataclass(frozen=True)
class TrainInStages(EvaluatorPart):
    """Train as far as a budget says, and further from the checkpoint when asked again."""

    NAME: ClassVar[str] = "staged"
    READS_TRIALS: ClassVar[bool] = True
    COPIES: ClassVar[int] = 4  # weights, and a checkpoint with both moments of Adam

    def bind(self, setting: Setting) -> Evaluator:
        from formwright.evaluate.training import Staged

        return Staged(setting.trainer)


@dataclass(frozen=True)
class InheritWeights(EvaluatorPart):
    """Train from the weights of the finished trial that shares most layers, if enough of them."""

    NAME: ClassVar[str] = "inherited"
    READS_TRIALS: ClassVar[bool] = True
    least_overlap: float = option(0.8, "share of layers in common with a trained design, at least", least=0, most=1)

    def bind(self, setting: Setting) -> Evaluator:
        from formwright.evaluate.inherited import Inherited

        return Inherited(setting.trainer, self.least_overlap)


@dataclass(frozen=True)
class _Pretrains(EvaluatorPart):
    """Have options of pretraining: filling in hidden words before a task is learned."""

    READS_TRIALS: ClassVar[bool] = True
    steps: int = option(300, "pretraining steps of a trial; a longer training of a delivered model has more", least=1)
    text: Literal["task", "pydoc"] = option("task", "text to pretrain on: the task's training rows, or Python's prose")

    def trial_steps(self, steps: int) -> int:
        return steps + self.steps

    def least_length(self) -> int:
        """Give the least number of tokens of a row: text of another source is read in pieces of the usual size."""
        from formwright.tasks.row_length import LEAST, PIECES

        return PIECES if self.text == "pydoc" else LEAST

    def pretraining(
        self, setting: Setting, steps: int, own: int | None = None, folder: Path | None = None
    ) -> "Pretraining":
        from formwright.evaluate.inherited import Pretraining
        from formwright.tasks import load_task

        training = setting.trainer.training
        share = steps / training.recipe.steps
        number = max(1, round(share * (self.steps if own is None else own)))
        recipe = replace(training.recipe, steps=number)
        text = load_task("pydoc/masked").search_view().train if self.text == "pydoc" else None
        return Pretraining(replace(training, recipe=recipe), text, folder)


@dataclass(frozen=True)
class PretrainFirst(_Pretrains):
    """Pretrain every design before it is trained, unless a related trial can give its weights (FlexiBERT)."""

    NAME: ClassVar[str] = "pretrained"
    least_overlap: float = option(0.8, "share of layers in common to skip pretraining, at least", least=0, most=1)

    def bind(self, setting: Setting) -> Evaluator:
        from formwright.evaluate.inherited import Inherited, Pretrained
        from formwright.search.listing import Nearness

        # every trained design is a neighbour: the nearest hundred hardly ever share enough layers, counted whole
        inherited = Inherited(setting.trainer, self.least_overlap, distance=Nearness(setting.space, most=None))
        return Pretrained(inherited, self.pretraining(setting, setting.trainer.training.recipe.steps))

    def start(self, setting: Setting, steps: int, weights: Weights, folder: Path, history: History) -> "Start":
        super().start(setting, steps, weights, folder, history)
        return self.pretraining(setting, steps, folder=folder / PRETRAINING).start()


@dataclass(frozen=True)
class ShareBranches(_Pretrains):
    """Pretrain every design for a few steps from weights that all designs share in two branches (AutoBERT-Zero)."""

    NAME: ClassVar[str] = "bi-branch"
    from_scratch: bool = option(False, "pretrain every design from fresh weights instead of shared ones")

    def bind(self, setting: Setting) -> "BiBranch":
        """Give the evaluator of a study; refuse a space whose designs cannot share weights."""
        from formwright.evaluate.bi_branch import BiBranch

        pretraining = self.pretraining(setting, setting.trainer.training.recipe.steps)
        return BiBranch(setting.trainer, pretraining, self._branches(setting), self.from_scratch)

    def _branches(self, setting: Setting) -> "Branches":
        from formwright.supernet.branches import Branches

        space, number = setting.space, 1 if self.from_scratch else _SAMPLED  # from scratch nothing is shared
        designs = [space.sample(derive(setting.seed, "branches", turn), "gene") for turn in range(number)]
        cards = [space.card(design) for design in designs]
        return Branches.of(cards[0]) if self.from_scratch else Branches.common_to(cards)

    def shares_weights(self) -> bool:
        return not self.from_scratch

    def start(self, setting: Setting, steps: int, weights: Weights, folder: Path, history: History) -> "Start":
        """Give a start after pretraining alone, or one from the weights that all finished trials left.

        Designs are pretrained alone for as many steps as they are trained: the few steps of a trial are enough only
        because other trials have pretrained its weights before.
        """
        from formwright.evaluate.bi_branch import FromStore, seed_of_words

        own = setting.trainer.training.recipe.steps
        pretraining = self.pretraining(setting, steps, own, folder / PRETRAINING)
        if weights == "fresh":
            return pretraining.start()
        if self.from_scratch:
            raise IllegalInput("trials that train every design from scratch leave no weights; deliver fresh ones")
        context = Context(setting.seed, folder.parent.parent, history)
        try:
            store = self.bind(setting).store(context)
        except EvaluationFailed as error:  # no fault of the design: the next best one would have the same
            raise IllegalInput(str(error)) from error
        return FromStore(store, pretraining, seed_of_words(store, context))


@dataclass(frozen=True)
class UntrainedScores(EvaluatorPart):
    """Score designs by proxies that need no training."""

    NAME: ClassVar[str] = "proxy"
    TRAINS: ClassVar[bool] = False
    proxies: tuple[str, ...] = option(("synflow",), "proxies (`formwright list proxies`); the first is the goal")

    def __post_init__(self) -> None:
        if not self.proxies:
            raise IllegalInput(f"name at least one proxy: {', '.join(PROXIES.names())}")

    def metrics(self, task: "Task | None") -> tuple[str, ...]:
        return self.proxies

    def bind(self, setting: Setting) -> "UntrainedScores":
        for name in self.proxies:
            PROXIES.get(name)  # an unknown one is refused
        return self

    def evaluate(self, request: Request, context: Context) -> Observation:
        """Score a card without training; the metrics are named after the proxies."""
        began, card = time.perf_counter(), card_of(request)
        scores = {name: PROXIES.get(name)(card, context.seed) for name in self.proxies}
        return Observation(scores, Spent(time.perf_counter() - began))
