"""The smallest thing that fulfils each protocol does, and stops doing so when any of its members is taken away."""

import inspect
from typing import Any

import pytest

from formwright.core import protocols
from formwright.core.protocols import CardLike, Evaluator, GroupEvaluator, Searcher, SpaceLike

_OF_A_SPACE = "name sample contains count enumerate mutate crossover neighbours encode card"
MEMBERS = {
    CardLike: ["digest", "to_json"],
    SpaceLike: _OF_A_SPACE.split(),
    Searcher: ["ask"],
    Evaluator: ["evaluate"],
    GroupEvaluator: ["evaluate", "together", "evaluate_together"],
}


def toy(members: list[str]) -> object:
    return type("Toy", (), {member: lambda self, *given: None for member in members})()


@pytest.mark.parametrize("protocol", MEMBERS)
def test_exactly_the_members_are_needed(protocol: Any) -> None:
    assert isinstance(toy(MEMBERS[protocol]), protocol)
    for member in MEMBERS[protocol]:
        assert not isinstance(toy([name for name in MEMBERS[protocol] if name != member]), protocol)


def test_no_protocol_is_forgotten() -> None:
    kinds = inspect.getmembers(protocols, inspect.isclass)
    assert {kind for _, kind in kinds if kind.__module__ == protocols.__name__} == set(MEMBERS)
