"""The smallest thing that fulfils each protocol does, and stops doing so when any of its members is taken away."""

import inspect
from typing import Any

import pytest

from formwright.core import protocols
from formwright.core.protocols import CardLike, Cost, Evaluator, Searcher, SearchView, Space, Task

MEMBERS = {
    CardLike: ("digest", "to_json"),
    Space: (
        "name",
        "sample",
        "contains",
        "count",
        "enumerate",
        "mutate",
        "crossover",
        "neighbours",
        "encode",
        "card",
    ),
    Searcher: ("ask",),
    Evaluator: ("evaluate",),
    Cost: ("__call__",),
    SearchView: ("train", "validation"),
    Task: ("name", "search_view"),
}
CASES = [(protocol, member) for protocol, members in MEMBERS.items() for member in members]


def toy(members: tuple[str, ...]) -> object:
    return type("Toy", (), {member: lambda self, *given: None for member in members})()


@pytest.mark.parametrize("protocol", MEMBERS)
def test_the_members_are_enough(protocol: Any) -> None:
    assert isinstance(toy(MEMBERS[protocol]), protocol)


@pytest.mark.parametrize(("protocol", "member"), CASES)
def test_every_member_is_needed(protocol: Any, member: str) -> None:
    assert not isinstance(toy(tuple(name for name in MEMBERS[protocol] if name != member)), protocol)


def test_no_protocol_is_forgotten_and_each_is_explained() -> None:
    found = {
        kind
        for _, kind in inspect.getmembers(protocols, inspect.isclass)
        if kind.__module__ == protocols.__name__ and getattr(kind, "_is_protocol", False)
    }
    assert found == set(MEMBERS)
    assert all(len((kind.__doc__ or "").strip().splitlines()) >= 3 for kind in found)


def test_a_search_view_has_no_test_split() -> None:
    assert not hasattr(SearchView, "test")
