"""Join the scores of several evaluators, and costs, into one observation."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from formwright.arch.card import Card
from formwright.core.errors import IllegalInput
from formwright.core.protocols import Evaluator
from formwright.core.records import Measure, Observation, Request, Spent
from formwright.evaluate.context import Context
from formwright.evaluate.training import card_of

Cost = Callable[[Card], "Measure | int | float"]


@dataclass(frozen=True)
class Combine:
    """Score a card by all given evaluators, one after the other, and by all given costs, by name."""

    evaluators: tuple[Evaluator, ...]
    costs: Mapping[str, Cost] = field(default_factory=dict, hash=False)

    def evaluate(self, request: Request, context: Context) -> Observation:
        """Join what the evaluators observe, add up what they spent, and add the costs."""
        metrics: dict[str, float] = {}
        artifacts: dict[str, str] = {}
        spent = Spent()
        if self.costs:
            card = card_of(request)
            metrics |= {name: _value(cost(card)) for name, cost in self.costs.items()}
        for evaluator in self.evaluators:
            found = evaluator.evaluate(request, context)
            _refuse_both("metric", metrics, found.metrics)
            _refuse_both("artifact", artifacts, found.artifacts)
            metrics |= found.metrics
            artifacts |= found.artifacts
            spent = _sum(spent, found.spent)
        return Observation(metrics, spent, artifacts)


def _value(measured: "Measure | int | float") -> float:
    return float(measured.value if isinstance(measured, Measure) else measured)


def _sum(one: Spent, other: Spent) -> Spent:
    return Spent(one.seconds + other.seconds, one.steps + other.steps, one.macs + other.macs)


def _refuse_both(what: str, one: Mapping[str, object], other: Mapping[str, object]) -> None:
    if both := sorted(one.keys() & other.keys()):
        raise IllegalInput(f"two of the combined evaluators give the {what} {both[0]!r}; leave one of them out")
