from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.random import default_rng

from formwright.core.errors import BuildFailed, Fault, IllegalDesign, IllegalInput, NotCountable
from formwright.space import Case, Choice, Fields, Record, Repeat, Space, Switch

LAYER = Record.of(heads=Choice((2, 4)), mixer=Switch.of(sa=Choice(("sdp", "wma")), identity=Record.of()))
ROOT = Record.of(hidden=Choice((128, 256)), layers=Repeat(LAYER, times=(1, 2)))


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


def test_a_constraint_leaves_the_space_it_came_from_alone() -> None:
    assert SPACE.where == ()
    assert [constraint.name for constraint in WIDE.where] == ["hidden=256"]


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
    assert [fault.where for fault in caught.value.faults] == [
        "hiden",
        "hidden",
        "layers",
        "layers[0].heads",
        "layers[0].mixer",
        "layers[1].mixer.sa",
        "layers[2].mixer",
    ]


def test_json_that_breaks_constraints_names_them_all() -> None:
    space = WIDE.restrict("never", lambda card: False)
    with pytest.raises(IllegalDesign) as caught:
        space.from_json(SPACE.to_json(next(SPACE.enumerate())))
    assert caught.value.faults == (
        Fault("", "breaks the constraint hidden=256"),
        Fault("", "breaks the constraint never"),
    )


def test_vectors_of_the_wrong_shape_and_unknown_ways_to_sample_are_refused() -> None:
    with pytest.raises(IllegalInput, match=rf"shape \({SPACE.width},\), not \(3,\)"):
        SPACE.decode(np.zeros(3))
    with pytest.raises(IllegalInput, match="cannot sample by 'luck'; sample by 'design' or 'gene'"):
        SPACE.sample(default_rng(0), by="luck")  # type: ignore[arg-type]


def test_spaces_with_equal_parts_are_equal_values() -> None:
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
