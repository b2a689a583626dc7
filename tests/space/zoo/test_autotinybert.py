import pytest

from formwright.cost import params, params_body
from formwright.space import Fields, Space
from formwright.space.zoo import load_card
from formwright.space.zoo.autotinybert import AUTOTINYBERT, KD, KD_NANO


@pytest.mark.parametrize(("name", "layers", "hidden"), [("tiny", 2, 128), ("mini", 4, 256), ("medium", 8, 512)])
def test_small_berts_are_inside(name: str, layers: int, hidden: int) -> None:
    design = Fields.of(layers=layers, hidden=hidden, heads=hidden // 64, feed_forward=4 * hidden)
    assert AUTOTINYBERT.contains(design)
    assert AUTOTINYBERT.card(design) == load_card(f"bert-{name}")


@pytest.mark.parametrize(
    ("layers", "hidden", "heads", "feed_forward"), [(1, 128, 1, 128), (8, 768, 12, 3072), (3, 768, 1, 640)]
)
def test_ends_of_the_published_ranges_are_inside(layers: int, hidden: int, heads: int, feed_forward: int) -> None:
    design = Fields.of(layers=layers, hidden=hidden, heads=heads, feed_forward=feed_forward)
    assert AUTOTINYBERT.contains(design)
    stack = AUTOTINYBERT.card(design).encoder
    assert (len(stack.layers), len(set(stack.layers)), stack.layers[0].width) == (layers, 1, hidden)


def test_the_published_model_lies_on_neither_grid() -> None:
    card = load_card("autotinybert-s1")
    assert (params(card), params_body(card)) == (29_573_882, 11_749_790)
    design = Fields.of(layers=5, hidden=564, heads=8, feed_forward=1_054)
    assert not AUTOTINYBERT.contains(design)
    assert AUTOTINYBERT.build(design) == card


@pytest.mark.parametrize(("space", "heads", "widths"), [(KD, 12, {15, 64}), (KD_NANO, 4, {4, 16})])
def test_distilled_designs_have_heads_of_any_width(space: Space, heads: int, widths: set[int]) -> None:
    """Check the ends of the widths: queries, keys and values are 180 to 768 wide in the published space."""
    found = set()
    for qkv in dict(space.root.fields)["qkv"].options:
        attention = space.card(Fields.of(layers=1, hidden=128, qkv=qkv, feed_forward=128)).encoder.layers[0].mixer
        assert (attention.heads, attention.heads * attention.head_width) == (heads, qkv)
        found.add(attention.head_width)
    assert {min(found), max(found)} == widths


@pytest.mark.parametrize("layers", [0, 9, 12])
def test_deeper_models_are_outside(layers: int) -> None:
    assert not AUTOTINYBERT.contains(Fields.of(layers=layers, hidden=768, heads=12, feed_forward=3072))
