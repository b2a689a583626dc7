from formwright.space.zoo import load_card, load_space


def test_the_published_space_has_twelve_designs() -> None:
    space = load_space("dynabert")
    assert space.count() == 12
    cards = {(design.width, design.depth): space.card(design) for design in space.enumerate()}
    assert cards[1.0, 1.0] == load_card("bert-base")
    small = cards[0.25, 0.5].encoder.layers
    assert len(small) == 6
    assert {(layer.mixer.heads, layer.feed_forward) for layer in small} == {(3, (768,))}
