from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import default_rng

from formwright.core.errors import IllegalInput
from formwright.space import Case, Choice, Fields, Part, Record, Repeat, Switch, mutate, neighbours

SEEDS = st.integers(0, 2**32 - 1)
# a deadline on single examples would fail on a busy machine; pytest limits the whole test
PROPERTY = settings(max_examples=60, deadline=None)


@PROPERTY
@given(data=st.data(), seed=SEEDS)
def test_mutation_changes_exactly_one_gene_and_stays_legal(parts: Any, data: Any, seed: int) -> None:
    part = data.draw(parts)
    rng = default_rng(seed)
    value = part.sample(rng, "gene")
    if all(len(gene.options) == 1 for gene in part.genes(value)):
        with pytest.raises(IllegalInput, match="cannot be mutated"):
            mutate(part, value, rng)
        return
    child = mutate(part, value, rng)
    assert part.contains(child)
    assert_one_gene_apart(part, value, child)
    assert mutate(part, value, default_rng(seed)) == mutate(part, value, default_rng(seed))


@PROPERTY
@given(data=st.data(), seed=SEEDS)
def test_neighbours_are_one_gene_away_distinct_and_not_the_design(parts: Any, data: Any, seed: int) -> None:
    part = data.draw(parts)
    value = part.sample(default_rng(seed), "gene")
    found = list(neighbours(part, value))
    assert len(set(found)) == len(found) == sum(len(gene.options) - 1 for gene in part.genes(value))
    assert value not in found
    assert found == list(neighbours(part, value))
    for other in found:
        assert part.contains(other)
        assert_one_gene_apart(part, value, other)


def test_every_gene_with_another_option_mutates_equally_often() -> None:
    part = Record.of(fixed=Choice((1,)), two=Choice((1, 2)), many=Choice(tuple(range(50))))
    value = Fields.of(fixed=1, two=1, many=0)
    rng = default_rng(0)
    changed_two = sum(mutate(part, value, rng).two == 2 for _ in range(2_000))
    assert changed_two / 2_000 == pytest.approx(0.5, abs=0.05)


def test_a_case_that_becomes_active_takes_its_first_options_in_a_neighbour() -> None:
    part = Switch.of(attention=Record.of(heads=Choice((2, 4)), score=Choice(("sdp", "wma"))), identity=Record.of())
    assert list(neighbours(part, Case("identity", Fields.of()))) == [Case("attention", Fields.of(heads=2, score="sdp"))]


def test_a_longer_repetition_copies_its_last_member_in_a_neighbour() -> None:
    part = Repeat(Choice((1, 2, 3)), times=(0, 2, 4), tied=2)
    assert list(neighbours(part, (3,))) == [(), (3, 3), (1,), (2,)]
    assert list(neighbours(part, ())) == [(1,), (1, 1)]
    assert next(neighbours(Repeat(Choice((1, 2)), times=(2, 4)), (1, 2))) == (1, 2, 2, 2)


def test_a_longer_repetition_keeps_its_members_and_draws_the_new_ones() -> None:
    part = Repeat(Choice((1, 2, 3)), times=(1, 4))
    rng = default_rng(0)
    longer = {child for child in (mutate(part, (2,), rng) for _ in range(500)) if len(child) == 4}
    assert {child[0] for child in longer} == {2}
    assert len(longer) == 27


def assert_one_gene_apart(part: Part[Any], value: Any, other: Any) -> None:
    """Check that one gene changed, and that others only appear or disappear below it."""
    before, after = ({gene.path: gene.value for gene in part.genes(held)} for held in (value, other))
    changed = [path for path in before.keys() & after.keys() if before[path] != after[path]]
    assert len(changed) == 1
    (path,) = changed
    for appeared in before.keys() ^ after.keys():
        assert appeared[: len(path)] == path
