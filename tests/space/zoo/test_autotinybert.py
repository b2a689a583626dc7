import pytest

from formwright.space import Fields
from formwright.space.zoo import load_card
from formwright.space.zoo.autotinybert import AUTOTINYBERT


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


@pytest.mark.parametrize("layers", [0, 9, 12])
def test_deeper_models_are_outside(layers: int) -> None:
    assert not AUTOTINYBERT.contains(Fields.of(layers=layers, hidden=768, heads=12, feed_forward=3072))
