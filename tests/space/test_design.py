import copy
import json
import pickle
from collections import Counter
from dataclasses import FrozenInstanceError
from itertools import islice
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import Generator, default_rng

from formwright.core.errors import Fault
from formwright.space import (
    Case,
    Choice,
    Combinator,
    Expressions,
    Fields,
    Gene,
    Path,
    Record,
    Repeat,
    Switch,
    show_path,
)
from formwright.space.design import below, pick, weighted

SEEDS = st.integers(0, 2**32 - 1)
# a deadline on single examples would fail on a busy machine; pytest limits the whole test
PROPERTY = settings(max_examples=60, deadline=None)
BY = st.sampled_from(["design", "gene"])


@pytest.mark.parametrize(
    ("path", "shown"),
    [((), ""), (("layers", 1, "mixer"), "layers[1].mixer"), ((0, 2), "[0][2]"), ((1, "heads"), "[1].heads")],
)
def test_paths_are_written_as_people_read_them(path: Path, shown: str) -> None:
    assert (show_path(path), Gene(path, 1, lambda value: (value,)).name) == (shown, shown)


def test_fields_are_frozen_values_that_travel() -> None:
    fields = Fields.of(heads=2, mixer=Case("sa", "sdp"))
    assert fields.heads == fields["heads"] == 2
    assert (fields.mixer.tag, list(fields)) == ("sa", ["heads", "mixer"])
    assert dict(fields) == {"heads": 2, "mixer": Case("sa", "sdp")}
    assert (len(fields), repr(fields)) == (2, "Fields(heads=2, mixer=Case(tag='sa', value='sdp'))")
    assert Fields.of(heads=2) == Fields.of(heads=2)
    assert len({Fields.of(heads=2), Fields.of(heads=2), Fields.of(heads=4)}) == 2
    assert Fields.of(heads=2) != Fields.of(width=2)
    fields = Fields.of(heads=2, layers=(Fields.of(width=3),))
    assert pickle.loads(pickle.dumps(fields)) == copy.deepcopy(fields) == copy.copy(fields) == fields
    fields = Fields.of(heads=2, width=3)
    with pytest.raises(AttributeError, match="no field 'head'; fields are heads, width"):
        _ = fields.head
    with pytest.raises(KeyError, match="head"):
        _ = fields["head"]
    assert not hasattr(fields, "_hidden")
    with pytest.raises(FrozenInstanceError):
        Case("sa", 1).tag = "lt"  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        Fields.of(heads=2).pairs = ()  # type: ignore[misc]
    assert Gene(("heads",), 4, lambda value: (value, 2 * value)).options == (4, 8)


class Script:
    """Stand in for a generator whose bytes are known."""

    def __init__(self, draws: list[int]) -> None:
        self._draws = iter(draws)

    def bytes(self, length: int) -> bytes:
        return next(self._draws).to_bytes(length, "little")


@given(bound=st.integers(1, 2**200), seed=st.integers(0, 2**32 - 1))
def test_draws_lie_below_the_bound_and_repeat_with_the_seed(bound: int, seed: int) -> None:
    drawn = below(default_rng(seed), bound)
    assert 0 <= drawn < bound
    assert drawn == below(default_rng(seed), bound)


@pytest.mark.parametrize("bound", [5 * 2**61, 2**63, 2**63 + 1, 2**64, 5 * 2**64, 5 * 10**40])
def test_large_draws_are_uniform(bound: int) -> None:
    rng = default_rng(1)
    fifths = Counter(below(rng, bound) * 5 // bound for _ in range(5_000))
    assert all(fifths[fifth] == pytest.approx(1_000, abs=110) for fifth in range(5))


def test_draws_reach_all_bits_and_stay_below_the_bound() -> None:
    rng = default_rng(1)
    assert sum(below(rng, 2**100 + 7) % 2 for _ in range(4_000)) == pytest.approx(2_000, abs=130)
    bound = 2**64 - 1
    assert below(cast(Generator, Script([bound, 5])), bound) == 5
    assert below(cast(Generator, Script([bound - 1])), bound) == bound - 1


def test_weights_set_the_probabilities() -> None:
    rng = default_rng(2)
    seen = Counter(weighted(rng, [0, 1, 3, 0, 1]) for _ in range(5_000))
    assert (set(seen), seen[2]) == ({1, 2, 4}, pytest.approx(3_000, abs=140))
    rng = default_rng(2)
    seen = Counter(weighted(rng, [10**30, 3 * 10**30]) for _ in range(4_000))
    assert seen[1] == pytest.approx(3_000, abs=120)
    assert [pick(default_rng(seed), [1, 3, 6]) for seed in range(20)] == [
        weighted(default_rng(seed), [1, 2, 3]) for seed in range(20)
    ]


@PROPERTY
@given(data=st.data(), seed=SEEDS, by=BY)
def test_sampled_designs_are_contained_repeat_with_the_seed_and_survive(
    parts: Any, data: Any, seed: int, by: Any
) -> None:
    part = data.draw(parts)
    value = part.sample(default_rng(seed), by)
    assert part.contains(value)
    assert part.sample(default_rng(seed), by) == value
    assert pickle.loads(pickle.dumps((part, value))) == (part, value)
    assert hash(pickle.loads(pickle.dumps(value))) == hash(value)
    vector = part.encode(value)
    assert (vector.shape, set(np.unique(vector)) - {0.0, 1.0}) == ((part.width,), set())
    assert part.decode(vector) == value
    assert part.decode(vector * 0.6 + 0.2) == value  # the largest entry of a block wins
    faults: list[Fault] = []
    assert part.from_json(json.loads(json.dumps(part.to_json(value))), (), faults) == value
    assert faults == []


@PROPERTY
@given(data=st.data())
def test_enumeration_agrees_with_the_count_and_has_no_duplicates(small_parts: Any, data: Any) -> None:
    part = data.draw(small_parts)
    values = list(part.enumerate())
    assert all(gene.value == gene.options[0] for gene in part.genes(values[0]))
    assert len(values) == part.count()
    assert len(set(values)) == len(values)
    assert all(map(part.contains, values))
    assert len({part.encode(value).tobytes() for value in values}) == len(values)


@PROPERTY
@given(data=st.data(), seed=SEEDS)
def test_genes_have_distinct_paths_and_hold_one_of_their_options(parts: Any, data: Any, seed: int) -> None:
    part = data.draw(parts)
    genes = list(part.genes(part.sample(default_rng(seed), "gene")))
    assert len({gene.path for gene in genes}) == len(genes)
    for gene in genes:
        assert gene.value in gene.options
        assert len(set(gene.options)) == len(gene.options)


@PROPERTY
@given(data=st.data(), seed=SEEDS)
def test_every_gene_of_a_child_comes_from_a_parent_that_has_it(parts: Any, data: Any, seed: int) -> None:
    part = data.draw(parts)
    rng = default_rng(seed)
    first, second = part.sample(rng, "gene"), part.sample(rng, "gene")
    child = part.crossover(first, second, rng)
    assert part.contains(child)
    assert part.crossover(first, first, rng) == first
    parents = [_values(part, first), _values(part, second)]
    for gene in part.genes(child):
        inherited = [parent[gene.path] for parent in parents if gene.path in parent]
        assert inherited
        # two different terms at one place exchange subterms, so the child's may be new; test_edits looks at those
        assert gene.value in inherited or (_is_expression(gene) and len(set(inherited)) == 2)


def test_sampling_is_uniform_by_design_or_by_gene() -> None:
    part = Record.of(
        layers=Repeat(Switch.of(attention=Choice((2, 4, 8)), identity=Record.of()), times=(1, 2)), width=Choice((1, 2))
    )
    assert _chi_square(part, default_rng(7), draws=8_000) < _critical(part.count() - 1)
    part = Repeat(Switch.of(attention=Choice((2, 4, 8)), identity=Record.of()), times=(1, 3))
    rng = default_rng(3)
    values = [part.sample(rng, "gene") for _ in range(4_000)]
    assert Counter(map(len, values))[1] / 4_000 == pytest.approx(0.5, abs=0.03)
    assert Counter(value[0].tag for value in values)["identity"] / 4_000 == pytest.approx(0.5, abs=0.03)
    part = Expressions(largest=2)
    assert _chi_square(part, default_rng(11), draws=6_000) < _critical(part.count() - 1)


@pytest.mark.parametrize(
    ("feed_forward", "tied", "count"),
    [
        (Record.of(width=Choice((512, 1024)), stack=Choice((1, 3))), 2, 9_312),
        (Record.of(width=Choice((512, 1024)), stack=Choice((1, 3))), 1, 84_943_872),
        (Repeat(Choice((512, 1024)), times=(1, 3)), 1, 3_317_817_600),
    ],
)
def test_trees_shaped_like_published_spaces_have_the_published_counts(feed_forward, tied, count) -> None:
    mixer = Switch.of(sa=Choice(("sdp", "wma")), lt=Choice(("dft", "dct")), dsc=Choice((5, 9)))
    layer = Record.of(hidden=Choice((128, 256)), heads=Choice((2, 4)), mixer=mixer, feed_forward=feed_forward)
    part = Repeat(layer, times=(2, 4), tied=tied)
    assert part.count() == count
    if count < 10_000:
        assert len(set(part.enumerate())) == count


def test_huge_spaces_are_counted_exactly_and_sampled_and_listed_lazily() -> None:
    part = Repeat(Choice(tuple(range(10))), times=(99, 100))
    assert part.count() == 10**99 + 10**100
    lengths = Counter(len(part.sample(default_rng(seed))) for seed in range(300))
    assert 0.8 < lengths[100] / 300 < 0.98
    assert len(list(islice(part.enumerate(), 5))) == 5


def _values(part: Combinator[Any], value: Any) -> dict[Any, Any]:
    return {gene.path: gene.value for gene in part.genes(value)}


def _is_expression(gene: Gene) -> bool:
    return isinstance(getattr(gene.choices, "__self__", None), Expressions)


def _chi_square(part: Combinator[Any], rng: np.random.Generator, draws: int) -> float:
    seen = Counter(part.sample(rng) for _ in range(draws))
    expected = draws / part.count()
    return sum((seen[value] - expected) ** 2 / expected for value in part.enumerate())


def _critical(freedom: int) -> float:
    """Approximate the 99.9 % quantile of the chi-square distribution (Wilson and Hilferty)."""
    return float(freedom * (1 - 2 / (9 * freedom) + 3.09 * (2 / (9 * freedom)) ** 0.5) ** 3)
