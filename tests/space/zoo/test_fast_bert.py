from formwright.space import Fields
from formwright.space.zoo.fast_bert import NANO, PARTS, fast_bert


def test_chains_of_any_menu() -> None:
    assert NANO.count() == len(PARTS) ** 6
    narrow = fast_bert(("attention-1", "separable-3"))
    assert narrow.count() == 2**6
    design = Fields.of(layers=("attention-1", "separable-3") * 3)
    assert narrow.card(design) == NANO.card(design)
