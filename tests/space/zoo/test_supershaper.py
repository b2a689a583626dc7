import pytest

from formwright.arch.ops import Attention
from formwright.cost import params
from formwright.space import Fields
from formwright.space.zoo import load_card
from formwright.space.zoo.supershaper import NANO, SUPERSHAPER

SHAPES = {
    "37m": ([120] * 8 + [240] * 4, 37_070_880),
    "47m": ([240, 120, 120] + [240] * 5 + [360] * 4, 47_304_240),
    "56m": ([360] + [120] * 3 + [360] * 6 + [540] * 2, 55_739_160),
    "61m": ([360] + [240] * 3 + [360] * 4 + [480] * 2 + [540] * 2, 61_137_960),
    "87m": ([540] + [360] * 3 + [540] * 4 + [768] * 4, 86_998_104),
    "91m": ([600] + [360] * 3 + [600] * 4 + [768] * 4, 90_552_864),
}
ENDS = {"all 768": ([768] * 12, 115_989_504), "all 120": ([120] * 12, 33_189_360)}


@pytest.mark.parametrize("name", [*SHAPES, *ENDS])
def test_published_sizes(name: str) -> None:
    widths, published = (SHAPES | ENDS)[name]
    design = Fields.of(widths=tuple(widths))
    assert SUPERSHAPER.contains(design)
    card = SUPERSHAPER.card(design)
    assert params(card) == published
    if name in SHAPES:
        assert card == load_card(f"supershaper-{name}")


def test_published_size_before_maps_are_merged() -> None:
    """While it learns, a layer of the authors' code has a map from 768 at its input and one to 768 at its output."""
    card = SUPERSHAPER.card(Fields.of(widths=(768,) * 12))
    between = [(below, above) for _, below, above in card.encoder.projections[1:-1]]
    assert len(between) == 11
    more = sum((below + 1) * 768 + (768 + 1) * above - (below + 1) * above for below, above in between)
    assert params(card) + more == 122_486_016


def test_every_layer_stands_between_linear_maps() -> None:
    stack = SUPERSHAPER.card(Fields.of(widths=(120, 120, *(768,) * 9, 240))).encoder
    assert (stack.embedding.width, stack.output_width, len(stack.projections)) == (768, 768, 13)
    assert stack.projections[:2] == ((0, 768, 120), (1, 120, 120))
    assert stack.layers[0].mixer == Attention(12, 10)


def test_the_nano_space_has_as_many_maps() -> None:
    stack = NANO.card(Fields.of(widths=(24, 96, 48, 72))).encoder
    assert [(below, above) for _, below, above in stack.projections] == [
        (96, 24),
        (24, 96),
        (96, 48),
        (48, 72),
        (72, 96),
    ]
