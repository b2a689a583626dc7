"""Our evaluators keep the contract, and it finds those that break it."""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest
from tests.evaluate.test_shared import WHOLE, network
from tests.evaluate.toy import TASK
from tests.pipeline.cases import Given
from tests.supernet.branched import SPACE

from formwright.core.protocols import CardLike
from formwright.core.records import Budget, Observation, Request
from formwright.cost import params
from formwright.evaluate.context import Context
from formwright.pipeline.evaluators import (
    EVALUATORS,
    EvaluatorPart,
    InheritWeights,
    PretrainFirst,
    Setting,
    ShareBranches,
    TrainFully,
    TrainInStages,
    UntrainedScores,
)
from formwright.pipeline.function_evaluator import FunctionEvaluator
from formwright.pipeline.shared_evaluator import SharedSubnetworks
from formwright.pipeline.task_choice import TrainingChoice
from formwright.space.elastic import ElasticChoices
from formwright.testing.evaluator_contract import EvaluatorContract

TRAINING = TrainingChoice(steps=4, batch=16, length=12, device="cpu").make()


class Ours(EvaluatorContract):
    """Designs of two tiny layers, trained for a moment."""

    def setting(self) -> Setting:
        return Setting(SPACE, 0, TASK, TRAINING)


class TestFull(Ours):
    def part(self) -> EvaluatorPart:
        return TrainFully()


class TestStaged(Ours):
    def part(self) -> EvaluatorPart:
        return TrainInStages()


class TestInherited(Ours):
    def part(self) -> EvaluatorPart:
        return InheritWeights(0.3)


class TestPretrained(Ours):
    def part(self) -> EvaluatorPart:
        return PretrainFirst(2, least_overlap=0.3)


class TestBiBranch(Ours):
    def part(self) -> EvaluatorPart:
        return ShareBranches(2)


class TestProxy(Ours):
    def part(self) -> EvaluatorPart:
        return UntrainedScores(("synflow", "params"))


def score(card: CardLike, budget: Budget) -> Mapping[str, float]:
    return {"score": float(params(card))}  # type: ignore[arg-type]


class TestFunction(Ours):
    def part(self) -> EvaluatorPart:
        return FunctionEvaluator(score)


NETWORK = Given(network(steps=3))


class TestShared(EvaluatorContract):
    def part(self) -> EvaluatorPart:
        return SharedSubnetworks(NETWORK)

    def setting(self) -> Setting:
        space = ElasticChoices(WHOLE, ((1, 2),) * 2, ((16, 32),) * 2).space
        costs = (lambda card: float(params(card)),)
        return Setting(space, 0, TASK, TRAINING, costs, lambda stage: stage.load(None), None)


def test_every_evaluator_is_checked() -> None:
    kinds = [kind for kind in (*Ours.__subclasses__(), TestShared) if "part" in vars(kind)]
    assert {kind().part().NAME for kind in kinds} >= set(EVALUATORS.names())


# --- those that break it -------------------------------------------------------------------------------------------

NUMBERS = itertools.count()


@dataclass(frozen=True)
class Counts:
    """Give another score each time."""

    def evaluate(self, request: Request, context: Context) -> Observation:
        return Observation({"accuracy": float(next(NUMBERS))})


@dataclass(frozen=True)
class NamesItsPlace:
    def evaluate(self, request: Request, context: Context) -> Observation:
        return Observation({"accuracy": 0.5}, artifacts={"weights": str(context.folder)})


@dataclass(frozen=True)
class NamesAnotherScore:
    def evaluate(self, request: Request, context: Context) -> Observation:
        return Observation({"acuracy": 0.5})


@dataclass(frozen=True)
class GoesOnFromHalf:
    """Keep half of the work, and count it again where it is taken up."""

    def evaluate(self, request: Request, context: Context) -> Observation:
        assert context.folder is not None
        path = context.folder / "half"
        done = int(path.read_text()) if path.is_file() else 0
        path.write_text(str(done + 1))
        if context.after_step is not None:
            context.after_step(0, 0.0)
        return Observation({"accuracy": float(done)})


@dataclass(frozen=True)
class Broken(EvaluatorPart):
    NAME: ClassVar[str] = "full"
    kind: Any = None

    def bind(self, setting: Setting) -> Any:
        return self.kind()


@dataclass(frozen=True)
class LosesWeights(TrainFully):
    DELIVERS: ClassVar[Any] = "shared"


@pytest.mark.parametrize(
    ("part", "promise"),
    [
        (Broken(Counts), "test_the_same_requests_have_the_same_scores_in_another_process_and_place"),
        (Broken(Counts), "test_a_study_whose_folder_moved_goes_on"),
        (Broken(NamesItsPlace), "test_what_is_kept_lies_in_the_folder_of_the_study"),
        (Broken(NamesAnotherScore), "test_scores_have_the_promised_names_and_are_numbers"),
        (Broken(GoesOnFromHalf), "test_an_evaluation_that_was_killed_comes_to_the_same"),
        (LosesWeights(), "test_shared_weights_are_delivered_only_where_trials_leave_them"),
    ],
)
def test_a_broken_promise_is_found(part: EvaluatorPart, promise: str, tmp_path: Path) -> None:
    class Check(Ours):
        def part(self) -> EvaluatorPart:
            return part

    with pytest.raises(AssertionError):
        getattr(Check(), promise)(tmp_path)
