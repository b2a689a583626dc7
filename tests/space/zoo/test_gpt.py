import pytest

from formwright.cost import params_body
from formwright.space import Fields
from formwright.space.zoo import load_card, load_space

# layers, width, feed-forward width, heads, and the published millions of parameters outside the embedding
PUBLISHED = {
    "lts-1m": (4, 128, 768, 4, "1.06"), "lts-3m": (4, 320, 576, 2, "3.13"), "lts-4m": (4, 320, 896, 4, "3.95"),
    "lts-6m": (4, 448, 896, 2, "6.44"), "lts-7m": (9, 320, 640, 2, "7.41"), "lts-9m": (4, 576, 896, 8, "9.46"),
    "lts-13m": (10, 384, 960, 4, "13.32"), "lts-19m": (7, 704, 512, 2, "18.97"), "lts-25m": (7, 768, 768, 2, "24.83"),
    "lts-30m": (9, 704, 960, 2, "30.07"), "lts-33m": (6, 960, 960, 4, "33.24"), "lts-50m": (9, 960, 960, 2, "49.85"),
}  # fmt: skip


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_designs_have_the_published_sizes(name: str) -> None:
    layers, width, inner, heads, millions = PUBLISHED[name]
    space, card = load_space("lts"), load_card(name)
    design = Fields.of(layers=layers, hidden=width, feed_forward=inner, heads=heads)
    assert space.contains(design)
    assert space.card(design) == card
    assert f"{params_body(card) / 1e6:.2f}" == millions


def test_the_final_norm_is_counted() -> None:
    card = load_card("lts-7m")
    assert (card.family, card.decoder.causal) == ("decoder", True)
    assert f"{(params_body(card) - 2 * 320) / 1e6:.2f}" == "7.40"


def test_layers_of_the_nano_space_are_free() -> None:
    space = load_space("gpt-nano")
    layers = tuple(Fields.of(heads=heads, feed_forward=inner) for heads, inner in [(4, 64), (1, 256)])
    card = space.card(Fields.of(width=64, layers=layers))
    assert [(block.mixer.heads, block.mixer.head_width, *block.feed_forward) for block in card.decoder.layers] == [
        (4, 16, 64),
        (1, 16, 256),
    ]
