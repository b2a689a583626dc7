from formwright.space import Fields
from formwright.space.zoo import load_card
from formwright.space.zoo.supershaper import SUPERSHAPER


def test_shapes_of_any_width() -> None:
    design = Fields.of(widths=(768,) * 12)
    assert SUPERSHAPER.contains(design)
    assert SUPERSHAPER.card(design) == load_card("bert-base")
    stack = SUPERSHAPER.card(Fields.of(widths=(120, 120, *(768,) * 9, 240))).encoder
    assert (stack.embedding.width, stack.projections) == (120, ((120, 768), (768, 240)))
