import pytest

from formwright.arch.card import Card
from formwright.cost import macs, params
from formwright.space.zoo import load_card, load_space


@pytest.mark.parametrize(
    ("name", "space"),
    [
        ("vit-nano-8", "autoformer-nano"), ("vit-nano-28", "autoformer-nano-28"),
        ("vit-nano-32", "autoformer-nano-32"), ("frames-nano", "lighthubert-nano"),
    ],
)  # fmt: skip
def test_a_plain_design_reads_what_the_designs_of_a_space_read(name: str, space: str) -> None:
    plain, designs = load_card(name), load_space(space)
    design: Card = designs.card(next(iter(designs.enumerate())))
    assert plain.stacks[0].embedding.row_shape(99) == design.stacks[0].embedding.row_shape(99)


def test_their_sizes() -> None:
    sizes = {name: params(load_card(name)) for name in ("vit-nano-8", "vit-nano-28", "vit-nano-32", "frames-nano")}
    assert sizes == {"vit-nano-8": 34_976, "vit-nano-28": 138_368, "vit-nano-32": 141_376, "frames-nano": 49_664}
    assert macs(load_card("frames-nano"), 64) < macs(load_card("vit-nano-28"))
