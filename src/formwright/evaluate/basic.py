"""Simple evaluators: full and staged training, proxies without training, and combinations of evaluators and costs."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from formwright.arch.card import Card
from formwright.core.errors import IllegalInput
from formwright.core.protocols import Evaluator
from formwright.core.records import Budget, Measure, Observation, Request, Spent
from formwright.evaluate.context import Context, card_of
from formwright.evaluate.proxies import PROXIES

if TYPE_CHECKING:
    from formwright.evaluate.training import Trainer


@dataclass(frozen=True)
class Full:
    """Score a card by training it to the end of the recipe, whatever the budget."""

    trainer: "Trainer"

    def evaluate(self, request: Request, context: Context) -> Observation:
        return self.trainer.observe(Request(request.card, Budget.full()), context)


@dataclass(frozen=True)
class Staged:
    """Score a card after as many steps as its budget says; a later request resumes from the stored checkpoint.

    The learning rate follows the whole recipe, so that training in stages is, bit for bit, training in one go. The
    steps spent are those since the previous stage.
    """

    trainer: "Trainer"

    def evaluate(self, request: Request, context: Context) -> Observation:
        steps, most = request.budget.steps, self.trainer.training.recipe.steps
        if steps is not None and not 1 <= steps <= most:
            raise IllegalInput(f"the recipe trains 1 to {most} steps; a budget of {steps} is outside")
        if context.folder is None:
            raise IllegalInput("training in stages needs a folder for its checkpoints; give the context one")
        return self.trainer.observe(request, context, resumable=True)


@dataclass(frozen=True)
class ByProxy:
    """Score a card by proxies, without training; metrics are named after the proxies."""

    names: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.names:
            raise IllegalInput(f"name at least one proxy: {', '.join(PROXIES.names())}")
        for name in self.names:
            PROXIES.get(name)

    def evaluate(self, request: Request, context: Context) -> Observation:
        began = time.perf_counter()
        card = card_of(request)
        scores = {name: PROXIES.get(name)(card, context.seed) for name in self.names}
        return Observation(scores, Spent(time.perf_counter() - began))


Cost = Callable[[Card], "Measure | int | float"]


@dataclass(frozen=True)
class Combine:
    """Score a card by all given evaluators, one after the other, and by all given costs, by name."""

    evaluators: tuple[Evaluator, ...]
    costs: Mapping[str, Cost] = field(default_factory=dict, hash=False)

    def evaluate(self, request: Request, context: Context) -> Observation:
        metrics: dict[str, float] = {}
        artifacts: dict[str, str] = {}
        spent = Spent()
        if self.costs:
            card = card_of(request)
            measured = {name: cost(card) for name, cost in self.costs.items()}
            metrics = {name: float(one.value if isinstance(one, Measure) else one) for name, one in measured.items()}
        for evaluator in self.evaluators:
            found = evaluator.evaluate(request, context)
            _refuse_both("metric", metrics, found.metrics)
            _refuse_both("artifact", artifacts, found.artifacts)
            metrics |= found.metrics
            artifacts |= found.artifacts
            more = found.spent
            spent = Spent(spent.seconds + more.seconds, spent.steps + more.steps, spent.macs + more.macs)
        return Observation(metrics, spent, artifacts)


def _refuse_both(what: str, one: Mapping[str, object], other: Mapping[str, object]) -> None:
    if both := sorted(one.keys() & other.keys()):
        raise IllegalInput(f"two of the combined evaluators give the {what} {both[0]!r}; leave one of them out")
