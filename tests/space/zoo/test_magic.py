from formwright.space.zoo.magic import NANO


def test_every_layer_has_one_of_five_operations() -> None:
    assert NANO.count() == 5**6
    assert len(NANO.card(next(NANO.enumerate())).encoder.layers) == 6
