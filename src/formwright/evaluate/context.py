"""Context of an evaluation, the card that it is about, and evaluators combined; without torch."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from formwright.arch.card import Card
from formwright.core.errors import IllegalInput
from formwright.core.protocols import Evaluator, GroupEvaluator
from formwright.core.records import History, Measure, Observation, Request, Spent


@dataclass(frozen=True)
class Context:
    """Return an evaluator its seed, a folder to keep weights in, the trials so far, and someone to tell of each step.

    Without a folder nothing is stored, and evaluators that need files of earlier trials raise `IllegalInput`.
    """

    seed: int = 0
    folder: Path | None = None
    history: History = field(default_factory=History)
    after_step: Callable[[int, float], None] | None = field(default=None, compare=False)


def card_of(request: Request) -> Card:
    """Return the card of a request, which must be a Formwright card."""
    if not isinstance(request.card, Card):
        raise IllegalInput(f"only a formwright card can be trained, not a {type(request.card).__name__}")
    return request.card


Cost = Callable[[Card], "Measure | int | float"]


@dataclass(frozen=True)
class Combine:
    """Score a card by all given evaluators, one after the other, and by all given costs, by name."""

    evaluators: tuple[Evaluator, ...]
    costs: Mapping[str, Cost] = field(default_factory=dict, hash=False)

    @property
    def together(self) -> int:
        """Give how many requests are best evaluated at once: as many as all evaluators can."""
        return min((getattr(one, "together", 1) for one in self.evaluators), default=1)

    def evaluate(self, request: Request, context: Context) -> Observation:
        costs = self._costs(request)
        return _joined(costs, [evaluator.evaluate(request, context) for evaluator in self.evaluators])

    def evaluate_together(self, requests: Sequence[tuple[Request, Context]]) -> list[Observation]:
        """Evaluate several requests, by evaluators that can do that."""
        costs = [self._costs(request) for request, _ in requests]
        found = [cast(GroupEvaluator, evaluator).evaluate_together(requests) for evaluator in self.evaluators]
        return [_joined(own, scores) for own, *scores in zip(costs, *found, strict=True)]

    def _costs(self, request: Request) -> dict[str, float]:
        measured = {name: cost(card_of(request)) for name, cost in self.costs.items()}
        return {name: float(one.value if isinstance(one, Measure) else one) for name, one in measured.items()}


def _joined(metrics: dict[str, float], scores: Sequence[Observation]) -> Observation:
    """Add the observations of several evaluators to the costs of a design."""
    artifacts: dict[str, str] = {}
    spent = Spent()
    for found in scores:
        for what, one, other in (("metric", metrics, found.metrics), ("artifact", artifacts, found.artifacts)):
            if both := sorted(one.keys() & other.keys()):
                raise IllegalInput(f"two of the combined evaluators give the {what} {both[0]!r}; leave one out")
        metrics |= found.metrics
        artifacts |= found.artifacts
        more = found.spent
        spent = Spent(spent.seconds + more.seconds, spent.steps + more.steps, spent.macs + more.macs)
    return Observation(metrics, spent, artifacts)
