"""Random small trees of parts, for the properties that every combinator must have."""

from typing import Any

import pytest
from hypothesis import strategies as st

from formwright.space import Choice, Combinator, Expressions, Record, Repeat, Row, Switch

SCALARS = st.one_of(st.integers(-3, 3), st.sampled_from(["sdp", "wma", ""]), st.booleans(), st.none(), st.just(0.5))
OPTIONS = st.one_of(SCALARS, st.tuples(SCALARS, SCALARS))
EXPRESSIONS = tuple(Expressions(largest) for largest in (1, 2, 3))  # their tables are made once
NAMES = st.sampled_from(["heads", "hidden", "mixer"])


def _leaves() -> st.SearchStrategy[Combinator[Any]]:
    choices = st.lists(OPTIONS, min_size=1, max_size=3, unique=True).map(lambda options: Choice(tuple(options)))
    return st.one_of(choices, choices, st.sampled_from(EXPRESSIONS), st.just(Record.of()))


def _branches(parts: st.SearchStrategy[Combinator[Any]]) -> st.SearchStrategy[Combinator[Any]]:
    named = st.dictionaries(NAMES, parts, min_size=1, max_size=3)
    groups = st.lists(st.integers(0, 3), min_size=1, max_size=3, unique=True)
    return st.one_of(
        named.map(lambda fields: Record.of(**fields)),
        named.map(lambda cases: Switch.of(**cases)),
        st.builds(_repeat, parts, groups, st.integers(1, 3)),
        st.builds(_row, st.tuples(parts, parts, parts), groups, st.integers(1, 3)),
    )


def _repeat(part: Combinator[Any], groups: list[int], tied: int) -> Repeat:
    return Repeat(part, tuple(number * tied for number in groups), tied)


def _row(parts: tuple[Combinator[Any], ...], lengths: list[int], tied: int) -> Row:
    return Row(parts[: -(-max(lengths) // tied)], tuple(lengths), tied)


@pytest.fixture(scope="session")
def parts() -> st.SearchStrategy[Combinator[Any]]:
    """Draw a tree in which every combinator may hold every other."""
    return st.recursive(_leaves(), _branches, max_leaves=5)


@pytest.fixture(scope="session")
def small_parts(parts: st.SearchStrategy[Combinator[Any]]) -> st.SearchStrategy[Combinator[Any]]:
    """Draw a tree with few enough designs to list them all."""
    return parts.filter(lambda part: part.count() <= 500)
