from dataclasses import replace
from typing import Any

import pytest
from numpy.random import default_rng

from formwright.arch.card import Card
from formwright.arch.layers import Branch, Cell, Junction
from formwright.arch.ops import (
    Attention,
    Convolution,
    CrossAttention,
    GatedLinearUnit,
    Identity,
    LightweightConvolution,
    SeparableConvolution,
)
from formwright.cost import macs, params, params_body
from formwright.space import Case, Fields, Space
from formwright.space.zoo import load_card, load_space
from formwright.space.zoo.evolved_transformer import PUBLISHED, SMALL, SPACE, evolved_transformer, transformer

NANO = load_space("evolved-transformer-nano")
BIG = evolved_transformer("evolved-transformer-big", replace(PUBLISHED, width=1024))


def branch_gene(branch: Branch, model_width: int) -> Fields:
    """Read the genes of a branch off a card."""
    scale = branch.width / model_width
    match branch.operation:
        case Identity():
            operation = Case("identity", Fields.of())
        case Convolution(kernel):
            operation = Case("convolution", Fields.of(kernel=kernel, scale=scale))
        case SeparableConvolution(kernel, 1):
            operation = Case("separable", Fields.of(kernel=kernel, scale=scale))
        case GatedLinearUnit():
            operation = Case("gated", Fields.of(scale=scale))
        case Attention(heads):
            operation = Case("attention", Fields.of(heads=heads, scale=scale))
        case CrossAttention(heads):
            operation = Case("attend", Fields.of(heads=heads, scale=scale))
        case other:
            raise AssertionError(f"no published cell has {other}")
    return Fields.of(input=branch.input, norm=branch.norm, operation=operation, activation=branch.activation or "none")


def junction_gene(junction: Junction, model_width: int) -> Fields:
    right = Case("dead", Fields.of())
    if junction.right is not None:
        alive = Fields.of(branch=branch_gene(junction.right, model_width), combine=junction.combine)
        right = Case("alive", alive)
    return Fields.of(left=branch_gene(junction.left, model_width), right=right)


def genotype(card: Card) -> Fields:
    """Read the genes of a whole design off a card whose cells repeat."""
    halves: dict[str, Any] = {}
    for name, stack in zip(("encoder", "decoder"), card.stacks, strict=True):
        cell = stack.layers[0]
        genes = {f"junction_{index}": junction_gene(one, cell.width) for index, one in enumerate(cell.junctions, 1)}
        halves[name] = Fields.of(cells=len(stack.layers), **genes)
    return Fields.of(**halves)


@pytest.mark.parametrize(("space", "name"), [(SPACE, "base"), (BIG, "big")])
def test_the_published_design_lies_in_the_space(space: Space, name: str) -> None:
    card = load_card(f"evolved-transformer-{name}")
    assert space.contains(genotype(card))
    assert space.card(genotype(card)) == card


@pytest.mark.parametrize(("width", "name"), [(512, "base"), (1024, "big")])
def test_the_plain_transformer_lies_in_the_space(width: int, name: str) -> None:
    menu = replace(PUBLISHED, width=width, heads=(4, width // 64, 32))
    design, plain = transformer(menu), load_card(f"transformer-{name}")
    space = evolved_transformer("any", menu)
    assert space.contains(design)
    card = space.card(design)
    assert [len(stack.layers) for stack in card.stacks] == [3, 3]  # of two layers each
    assert params_body(card) == params_body(plain)
    assert macs(card, 32) == macs(plain, 32)


def test_a_small_menu_has_a_plain_transformer_too() -> None:
    assert NANO.contains(transformer(SMALL))
    encoder, decoder = NANO.card(transformer(SMALL)).stacks
    assert (len(encoder.layers), len(decoder.layers)) == (2, 2)
    odd = replace(SMALL, encoder_junctions=4)
    stack = evolved_transformer("odd", odd).card(transformer(odd)).stacks[0]
    assert stack.layers[0].junctions[3] == Junction(Branch(3, Identity(), 64))


@pytest.mark.parametrize("space", [SPACE, NANO], ids=["published", "nano"])
def test_every_sampled_card_is_legal(space: Space) -> None:
    rng = default_rng(8)
    for number in range(500):
        card = space.card(space.sample(rng, by="gene" if number % 2 else "design"))  # an illegal card cannot be made
        for stack, most in zip(card.stacks, (6, 8), strict=True):
            cell = stack.layers[0]
            assert set(stack.layers) == {cell}
            assert 1 <= len(cell.junctions) <= most
            assert reads(cell) == set(range(1, len(cell.junctions)))


def reads(cell: Cell) -> set[int]:
    """List the junctions that another one reads."""
    return {branch.input for one in cell.junctions for branch in (one.left, one.right) if branch is not None} - {0}


def branch(state: int, tag: str = "identity", activation: str = "none", **genes: Any) -> Fields:
    return Fields.of(input=state, norm=False, operation=Case(tag, Fields.of(**genes)), activation=activation)


def dead(left: Fields) -> Fields:
    return Fields.of(left=left, right=Case("dead", Fields.of()))


def alive(left: Fields, right: Fields, combine: str = "add") -> Fields:
    return Fields.of(left=left, right=Case("alive", Fields.of(branch=right, combine=combine)))


def half(*junctions: Fields) -> Fields:
    return Fields.of(cells=1, **{f"junction_{index}": one for index, one in enumerate(junctions, 1)})


def passing(junctions: int) -> Fields:
    """Make a half that passes its input on."""
    return half(*(dead(branch(state)) for state in range(junctions)))


IDENTITIES = Fields.of(encoder=passing(3), decoder=passing(4))


def nano_card(*junctions: Fields) -> Card:
    """Build a nano design with an encoder cell; its decoder passes its input on."""
    design = Fields.of(encoder=half(*junctions), decoder=passing(4))
    assert NANO.contains(design)
    return NANO.card(design)


def nano_cell(*junctions: Fields) -> Cell:
    return nano_card(*junctions).stacks[0].layers[0]


def test_a_junction_that_nobody_reads_is_left_out_and_states_are_numbered_anew() -> None:
    unread = alive(branch(0, "attention", heads=2, scale=1), branch(0))
    read = dead(branch(0, "convolution", kernel=3, scale=2))
    cell = nano_cell(unread, read, alive(branch(2), branch(0, "gated", scale=0.5), "concatenate"))
    assert cell.junctions == (
        Junction(Branch(0, Convolution(3), 128)),
        Junction(Branch(1, Identity(), 128), Branch(0, GatedLinearUnit(), 32), "concatenate"),
    )
    assert cell.output_width == 160


def test_dead_branches_are_left_out() -> None:
    cell = nano_cell(*[dead(branch(state, "gated", "swish", scale=1)) for state in range(3)])
    assert cell.junctions == tuple(
        Junction(Branch(state, GatedLinearUnit(), 64, activation="swish"), None) for state in range(3)
    )
    paths = {gene.name for gene in NANO.genes(IDENTITIES)}
    assert "encoder.junction_1.right" in paths
    assert not any(".combine" in path or ".alive" in path for path in paths)
    first = dead(branch(0, "gated", scale=2))
    second = dead(branch(1, "gated", scale=2))
    assert nano_cell(first, second, dead(branch(0))).junctions == (Junction(Branch(0, Identity(), 64)),)


def test_convolutions_keep_their_width_and_decoders_attend() -> None:
    joined = alive(branch(0), branch(0, "gated", scale=0.5), "concatenate")
    cell = nano_cell(joined, dead(branch(1, "lightweight", kernel=7, reduction=16)), dead(branch(2)))
    assert cell.junctions[1].left == Branch(1, LightweightConvolution(7, 6, gated=False), 96)
    tags = {half: {tag for name, tag in operation_tags(NANO) if name == half} for half in ("encoder", "decoder")}
    assert tags["decoder"] - tags["encoder"] == {"attend"}


def operation_tags(space: Space) -> set[tuple[str, str]]:
    genes = space.genes(IDENTITIES)
    operations = [gene for gene in genes if gene.name.endswith(".operation")]
    return {(str(gene.path[0]), option) for gene in operations for option in gene.options}


def test_counts_by_hand() -> None:
    def branches(states: int, decoder: bool) -> int:
        scales, heads = 4, 3
        operations = 1 + 2 * scales + 5 * scales + 4 * 3 + heads * scales + scales + (heads * scales if decoder else 0)
        return states * 2 * operations * 4

    def cell(junctions: int, decoder: bool) -> int:
        product = 6
        for states in range(1, junctions + 1):
            product *= branches(states, decoder) * (3 * branches(states, decoder) + 1)
        return product

    assert SPACE.count() == cell(6, False) * cell(8, True)


def test_what_is_dead_or_unread_costs_nothing() -> None:
    def costs(*junctions: Fields) -> tuple[int, float]:
        card = nano_card(*junctions)
        return params(card), macs(card, 16)

    kept = dead(branch(0, "convolution", kernel=3, scale=2))
    wide = alive(branch(0, "attention", heads=2, scale=1), branch(0, "gated", scale=2), "concatenate")
    plain = costs(kept, dead(branch(1)), dead(branch(2)))
    assert costs(kept, wide, dead(branch(1))) == plain
    assert costs(kept, dead(branch(1)), alive(branch(2), branch(0, "gated", scale=2)))[0] > plain[0]
