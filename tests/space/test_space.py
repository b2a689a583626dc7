from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import default_rng

from formwright.core.errors import BuildFailed, Fault, IllegalDesign, IllegalInput, NotCountable
from formwright.space import Case, Choice, Combinator, Fields, Record, Repeat, Space, Switch, mutate, neighbours
from formwright.space.space import estimate_share

SEEDS = st.integers(0, 2**32 - 1)
# a deadline on single examples would fail on a busy machine; pytest limits the whole test
PROPERTY = settings(max_examples=60, deadline=None)
LAYER = Record.of(heads=Choice((2, 4)), mixer=Switch.of(sa=Choice(("sdp", "wma")), identity=Record.of()))
ROOT = Record.of(hidden=Choice((128, 256)), layers=Repeat(LAYER, times=(1, 2)))


def test_no_hit_and_all_hits_keep_to_the_possible() -> None:
    for samples in range(1, 100):
        assert estimate_share(10**400, 0, samples).low == 0
        assert estimate_share(10**400, samples, samples).high == 10**400
    none, every = estimate_share(1_000, 0, 50), estimate_share(1_000, 50, 50)
    assert (none.estimate, none.low) == (0, 0)
    assert 0 < none.high < 100
    assert (every.estimate, every.high) == (1_000, 1_000)
    assert 900 < every.low < 1_000


def test_estimates_have_wilsons_interval() -> None:
    found = estimate_share(10**9, hits=30, samples=100)
    assert found.estimate == 300_000_000
    assert found.low < found.estimate < found.high
    for end in (found.low / 10**9, found.high / 10**9):
        # an end is the share from which the observed one is just 1.645 standard errors away
        assert abs(0.3 - end) / (end * (1 - end) / 100) ** 0.5 == pytest.approx(1.644854, abs=1e-5)
    found = estimate_share(10**400, 1, 2)
    assert found.estimate == 5 * 10**399
    assert 10**399 < found.low < found.high < 9 * 10**399


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


def test_neighbours_and_mutants_of_lists_and_cases() -> None:
    part = Switch.of(attention=Record.of(heads=Choice((2, 4)), score=Choice(("sdp", "wma"))), identity=Record.of())
    assert list(neighbours(part, Case("identity", Fields.of()))) == [Case("attention", Fields.of(heads=2, score="sdp"))]
    part = Repeat(Choice((1, 2, 3)), times=(0, 2, 4), tied=2)
    assert list(neighbours(part, (3,))) == [(), (3, 3), (1,), (2,)]
    assert list(neighbours(part, ())) == [(1,), (1, 1)]
    assert next(neighbours(Repeat(Choice((1, 2)), times=(2, 4)), (1, 2))) == (1, 2, 2, 2)
    part = Repeat(Choice((1, 2, 3)), times=(1, 4))
    rng = default_rng(0)
    longer = {child for child in (mutate(part, (2,), rng) for _ in range(500)) if len(child) == 4}
    assert ({child[0] for child in longer}, len(longer)) == ({2}, 27)
    part = Record.of(fixed=Choice((1,)), two=Choice((1, 2)), many=Choice(tuple(range(50))))
    value = Fields.of(fixed=1, two=1, many=0)
    rng = default_rng(0)
    assert sum(mutate(part, value, rng).two == 2 for _ in range(2_000)) / 2_000 == pytest.approx(0.5, abs=0.05)


def assert_one_gene_apart(part: Combinator[Any], value: Any, other: Any) -> None:
    """Check that one gene changed, and that others only appear or disappear below it."""
    before, after = ({gene.path: gene.value for gene in part.genes(held)} for held in (value, other))
    changed = [path for path in before.keys() & after.keys() if before[path] != after[path]]
    assert len(changed) == 1
    (path,) = changed
    for appeared in before.keys() ^ after.keys():
        assert appeared[: len(path)] == path


def as_card(design: Any) -> Any:
    """Stand in for a card: constraints look at the design itself."""
    return design


SPACE = Space("tiny", ROOT, as_card)


WIDE = SPACE.restrict("hidden=256", lambda card: card.hidden == 256)  # type: ignore[attr-defined]


def even_heads(card: Any) -> bool:
    return len({layer.heads for layer in card.layers}) == 1


def test_a_space_is_its_root() -> None:
    design = SPACE.sample(default_rng(0))
    assert SPACE.contains(design)
    assert SPACE.count() == 2 * (6 + 36) == len(set(SPACE.enumerate()))
    assert SPACE.decode(SPACE.encode(design)) == design
    assert SPACE.decode(list(SPACE.encode(design))) == design
    assert SPACE.width == len(SPACE.encode(design))
    assert SPACE.from_json(SPACE.to_json(design)) == design
    assert SPACE.card(design) is design
    assert SPACE.estimate_count(default_rng(0)) == (84, 84, 84)


def test_genes_say_where_they_are() -> None:
    design = Fields.of(hidden=128, layers=(Fields.of(heads=2, mixer=Case("sa", "wma")),))
    assert [(gene.name, gene.value) for gene in SPACE.genes(design)] == [
        ("hidden", 128),
        ("layers", 1),
        ("layers[0].heads", 2),
        ("layers[0].mixer", "sa"),
        ("layers[0].mixer.sa", "wma"),
    ]


def test_a_constraint_holds_for_every_operator() -> None:
    space = WIDE.restrict("equal heads", even_heads)
    rng = default_rng(1)
    designs = [space.sample(rng) for _ in range(50)]
    moved = [space.mutate(design, rng) for design in designs]
    crossed = [space.crossover(a, b, rng) for a, b in zip(designs, moved, strict=True)]
    near = [other for design in designs for other in space.neighbours(design)]
    for design in [*designs, *moved, *crossed, *near, *space.enumerate()]:
        assert SPACE.contains(design)
        assert space.contains(design)
        assert design.hidden == 256
        assert even_heads(design)
    assert space.count() == 6 + 2 * 9 == len(set(space.enumerate()))
    assert not WIDE.contains(next(SPACE.enumerate()))
    assert not WIDE.contains("no design at all")


def test_a_constraint_that_nothing_meets_is_named_with_the_tries() -> None:
    space = WIDE.restrict("params<=1", lambda card: False)
    with pytest.raises(
        IllegalInput, match=r"sample found no .* 'tiny' in 1000 tries.*params<=1 \(1000 times\), hidden"
    ):
        space.sample(default_rng(0))
    design = SPACE.sample(default_rng(0))
    with pytest.raises(IllegalInput, match="mutate found no"):
        space.mutate(design, default_rng(0))
    with pytest.raises(IllegalInput, match="crossover found no"):
        space.crossover(design, design, default_rng(0))


def test_large_constrained_spaces_are_estimated() -> None:
    space = Space("large", Repeat(Choice((0, 1, 2, 3)), times=40), as_card)
    half = space.restrict("first<2", lambda card: card[0] < 2)  # type: ignore[index]
    assert space.count() == 4**40
    with pytest.raises(NotCountable, match=r"'large' is constrained \(first<2\).*estimate_count\(rng, samples\)"):
        half.count()
    estimate, low, high = half.estimate_count(default_rng(0), samples=2_000)
    assert low < 4**40 // 2 < high
    assert low < estimate < high
    assert (high - low) / 4**40 == pytest.approx(0.0368, abs=0.001)
    with pytest.raises(IllegalInput, match="at least one sample"):
        half.estimate_count(default_rng(0), samples=0)


def test_every_fault_of_bad_json_is_listed_with_its_path() -> None:
    bad = {
        "hiden": 128,
        "layers": [{"heads": 3, "mixer": {"lt": "dft"}}, {"heads": 2, "mixer": {"sa": "dot"}}, {"heads": 2}],
    }
    with pytest.raises(IllegalDesign, match="illegal design of space 'tiny', 7 faults") as caught:
        SPACE.from_json(bad)
    places = "hiden hidden layers layers[0].heads layers[0].mixer layers[1].mixer.sa layers[2].mixer"
    assert [fault.where for fault in caught.value.faults] == places.split()


def test_json_that_breaks_constraints_names_them_all() -> None:
    space = WIDE.restrict("never", lambda card: False)
    with pytest.raises(IllegalDesign) as caught:
        space.from_json(SPACE.to_json(next(SPACE.enumerate())))
    assert caught.value.faults == (
        Fault("", "breaks the constraint hidden=256"),
        Fault("", "breaks the constraint never"),
    )


def test_spaces_are_values() -> None:
    assert (SPACE.where, [constraint.name for constraint in WIDE.where]) == ((), ["hidden=256"])
    with pytest.raises(IllegalInput, match=rf"shape \({SPACE.width},\), not \(3,\)"):
        SPACE.decode(np.zeros(3))
    with pytest.raises(IllegalInput, match="cannot sample by 'luck'; sample by 'design' or 'gene'"):
        SPACE.sample(default_rng(0), by="luck")  # type: ignore[arg-type]
    assert Space("tiny", Record.of(x=Choice((1,))), as_card) == Space("tiny", Record.of(x=Choice((1,))), as_card)
    assert hash(SPACE) == hash(Space("tiny", ROOT, as_card))


def only_narrow(design: Any) -> Any:
    return 1 / 0 if design.hidden == 256 else design


@pytest.mark.parametrize("space", [Space("mine", ROOT, only_narrow), replace(WIDE, name="mine", build=only_narrow)])
def test_what_build_raises_is_told_with_the_design(space: Space) -> None:
    told = r"the `build` of space 'mine' failed for the design .*256.*: ZeroDivisionError: division by zero$"
    with pytest.raises(BuildFailed, match=told) as caught:
        [space.card(design) for design in space.enumerate()]
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_a_long_design_is_shortened_in_the_message() -> None:
    space = Space("long", Repeat(Choice((0, 1)), times=400), lambda design: design.absent)
    with pytest.raises(BuildFailed, match=r"0, 0\.\.\.: AttributeError") as caught:
        space.card((0,) * 400)
    assert len(str(caught.value)) < 400


def test_what_build_refuses_itself_is_left_as_it_is() -> None:
    def build(design: Any) -> Any:
        raise IllegalInput("no")

    with pytest.raises(IllegalInput, match=r"^no$"):
        Space("mine", ROOT, build).card(next(ROOT.enumerate()))
