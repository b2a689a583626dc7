"""Evaluators and costs that score a card together."""

from dataclasses import dataclass

import pytest
from tests.evaluate.toy import Foreign, card

from formwright.core.errors import IllegalInput
from formwright.core.protocols import Evaluator
from formwright.core.records import Budget, Measure, Observation, Request, Spent
from formwright.cost import params
from formwright.evaluate.context import Combine, Context

CARD = card(32)
NOTHING = Spent()


@dataclass(frozen=True)
class Fixed:
    """Observe the same of every card."""

    observation: Observation

    def evaluate(self, _: Request, __: Context) -> Observation:
        return self.observation


def fixed(name: str, value: float, spent: Spent = NOTHING, **artifacts: str) -> Fixed:
    return Fixed(Observation({name: value}, spent, artifacts))


def test_metrics_and_artifacts_are_joined_and_what_was_spent_is_added() -> None:
    one = fixed("accuracy", 0.5, Spent(1.5, 10, 100), weights="here")
    other = fixed("saliency", 3.0, Spent(0.5, 2, 7), notes="there")
    found = Combine((one, other), {"params": params, "size": lambda _: Measure(3, "MB")}).evaluate(
        Request(CARD), Context()
    )
    assert found.metrics == {"accuracy": 0.5, "saliency": 3.0, "params": params(CARD), "size": 3.0}
    assert found.spent == Spent(2.0, 12, 107)
    assert found.artifacts == {"weights": "here", "notes": "there"}
    assert isinstance(Combine((one,)), Evaluator)


def test_evaluators_see_the_request_and_the_context() -> None:
    seen: list[object] = []

    class Seeing:
        def evaluate(self, request: Request, context: Context) -> Observation:
            seen.append((request, context))
            return Observation({})

    request, context = Request(CARD, Budget(3)), Context(5)
    Combine((Seeing(),)).evaluate(request, context)
    assert seen == [(request, context)]


@pytest.mark.parametrize(
    ("combined", "name"),
    [
        (Combine((fixed("accuracy", 0.5), fixed("accuracy", 0.5))), "metric 'accuracy'"),
        (Combine((fixed("params", 0.5),), {"params": params}), "metric 'params'"),
        (Combine((fixed("a", 0.5, weights="x"), fixed("b", 0.5, weights="y"))), "artifact 'weights'"),
    ],
)
def test_a_name_that_two_give_is_refused(combined: Combine, name: str) -> None:
    with pytest.raises(IllegalInput, match=name):
        combined.evaluate(Request(CARD), Context())


def test_only_costs_need_a_card_of_ours() -> None:
    assert Combine((fixed("accuracy", 0.5),)).evaluate(Request(Foreign()), Context()).metrics == {"accuracy": 0.5}
    with pytest.raises(IllegalInput, match="only a formwright card"):
        Combine((), {"params": params}).evaluate(Request(Foreign()), Context())
