from formwright.space import Fields
from formwright.space.zoo import load_card
from formwright.space.zoo.supershaper import SUPERSHAPER


def test_count() -> None:
    assert SUPERSHAPER.count() == 7**12


def test_the_widest_shape_is_bert_base() -> None:
    design = Fields.of(widths=(768,) * 12)
    assert SUPERSHAPER.contains(design)
    assert SUPERSHAPER.card(design) == load_card("bert-base")


def test_layers_of_unequal_width_are_joined_by_projections() -> None:
    stack = SUPERSHAPER.card(Fields.of(widths=(120, 120, *(768,) * 9, 240))).encoder
    assert stack is not None
    assert stack.embedding.width == 120
    assert stack.projections == ((120, 768), (768, 240))
