"""Closed forms of parameters and operations: against what torch builds, and against products spelled out."""

import pytest
from numpy.random import default_rng
from tests.arch.random_cards import NAMED
from tests.cost import slow_products as slow
from tests.cost.cases import CARDS, OPERATIONS

from formwright.arch.card import Card
from formwright.arch.embeddings import TokenEmbedding
from formwright.arch.layers import Block, Stack
from formwright.arch.ops import Attention, LightweightConvolution, Operation, OpGraph, Transform
from formwright.arch.tensors import Factor
from formwright.core.errors import IllegalInput
from formwright.cost import input_size, macs, params, params_attention, params_body, params_with_mlm_head
from formwright.nn.build import skeleton
from formwright.nn.layer_modules import operation_module
from formwright.nn.settings import Settings
from formwright.space.zoo import SPACES, load_card

SAMPLED = [name for name in SPACES.names() if not name.startswith("autobert-zero")]


def affine(inputs: int, outputs: int) -> int:
    return (inputs + 1) * outputs


def test_every_operation_of_the_vocabulary_is_counted() -> None:
    assert {type(operation) for operation in OPERATIONS} == NAMED


@pytest.mark.parametrize("operation", OPERATIONS, ids=repr)
@pytest.mark.parametrize(("width", "output", "memory"), [(48, 48, 48), (48, 24, 40), (32, 96, 16)])
def test_an_operation_has_the_weights_that_torch_builds(
    operation: Operation, width: int, output: int, memory: int
) -> None:
    if isinstance(operation, Transform):
        width = output = 48  # its heads are as wide as the layer
    if isinstance(operation, LightweightConvolution) and not operation.gated:
        output = width  # there is no map between the two
    built = operation_module(operation, width, output, memory, Settings())
    declared = operation.tensors(Factor(width), Factor(output), Factor(memory))
    assert sum(one.size for one in declared) == sum(one.numel() for one in built.parameters())


def check_params(card: Card) -> None:
    """Compare both counts with a model without memory."""
    built = {name.split(".")[1]: 0 for name, _ in skeleton(card).named_parameters()}
    for name, parameter in skeleton(card).named_parameters():
        built[name.split(".")[1]] += parameter.numel()
    assert params(card) == sum(built.values()) + card.idle
    assert params_body(card) == sum(built.get(part, 0) for part in ("layers", "projections", "final_norm"))


@pytest.mark.parametrize("name", CARDS)
def test_a_design_has_the_weights_that_torch_builds(name: str) -> None:
    check_params(CARDS[name])


@pytest.mark.parametrize("name", SPACES.names())
def test_sampled_designs_have_the_weights_that_torch_builds(name: str) -> None:
    space, rng = SPACES.get(name), default_rng(5)
    for _ in range(2):
        check_params(space.card(space.sample(rng, by="gene")))


def test_shared_tables_count_once_and_idle_parameters_only_in_the_whole() -> None:
    assert params(CARDS["translation"]) - params(CARDS["shared table"]) == 100 * 16
    assert params_body(CARDS["translation"]) == params_body(CARDS["shared table"])
    stack = CARDS["plain"].encoder
    busy, idle = Card(stack), Card(stack, idle=77)
    assert params(idle) - params(busy) == 77
    assert params_body(idle) == params_body(busy)


def test_the_language_model_head_replaces_the_pooler_and_is_tied_to_the_table() -> None:
    card, bare = CARDS["plain"], Card(CARDS["plain"].encoder)
    head = affine(48, 48) + 2 * 48 + 100
    assert params_with_mlm_head(card) == params_with_mlm_head(bare) == params(bare) + head
    card = CARDS["factorised"]
    assert params_with_mlm_head(card) == params(card) + affine(48, 12) + 2 * 12 + 100


@pytest.mark.parametrize("name", ["patches", "frames"])
def test_a_language_model_head_needs_words(name: str) -> None:
    with pytest.raises(IllegalInput, match="token"):
        params_with_mlm_head(CARDS[name])


def test_attention_parameters_are_the_input_maps_of_all_attentions() -> None:
    blocks = (
        Block(48, Attention(3, 8, bias=False), (96,)),
        Block(48, OpGraph(2, 8, ("add", "Q", "P"))),
        Block(48, Transform("dft")),
        Block(48, LightweightConvolution(3, 4)),
    )
    assert params_attention(Card(Stack(TokenEmbedding(100, 48), blocks))) == 3 * 48 * 24 + 2 * (48 * 16 + 16)
    encoder = 2 * 3 * affine(48, 16)
    first = 3 * affine(32, 16) + affine(32, 16) + 2 * affine(48, 16)
    second = 3 * affine(40, 16) + 40 * 48 + 2 * 48 * 48
    assert params_attention(CARDS["translation"]) == encoder + first + second
    assert params_attention(CARDS["cells"]) == 2 * 3 * affine(64, 16)
    # 512-wide maps without biases: one attention in each of 3 cells; two, and two that read the encoder, in each of 4
    assert params_attention(load_card("evolved-transformer-base")) == 3 * (3 + 4 * 4) * 512**2


WIDTHS = [(48, 48, (48, 7)), (48, 24, (40, 7)), (32, 96, (16, 11))]


@pytest.mark.parametrize("operation", OPERATIONS, ids=repr)
@pytest.mark.parametrize(("width", "output", "memory"), WIDTHS)
@pytest.mark.parametrize("length", [1, 13])
def test_an_operation_takes_the_products_one_can_list(
    operation: Operation, width: int, output: int, memory: tuple[int, int], length: int
) -> None:
    products = slow.operation_products(operation, width, output, length, slow.Memory(*memory))
    declared = operation.products(width, output, length, memory)
    assert sum(one.macs for one in declared) == slow.total(products)


@pytest.mark.parametrize("length", [1, 16, 100])
@pytest.mark.parametrize("name", CARDS)
def test_a_design_takes_the_products_one_can_list(name: str, length: int) -> None:
    assert macs(CARDS[name], length) == slow.total(slow.card_products(CARDS[name], length))


@pytest.mark.parametrize("name", SAMPLED)
def test_sampled_designs_take_the_products_one_can_list(name: str) -> None:
    space, rng = SPACES.get(name), default_rng(6)
    for length in (8, 30, 128):
        card = space.card(space.sample(rng, by="gene"))
        assert macs(card, length) == slow.total(slow.card_products(card, length))


def test_what_is_counted_over() -> None:
    assert macs(CARDS["plain"]) == macs(CARDS["plain"], 128) > macs(CARDS["plain"], 127)
    assert macs(CARDS["patches"], 5) == macs(CARDS["patches"], 500)
    assert macs(CARDS["image captions"], 5) < macs(CARDS["image captions"], 6)
    assert input_size(CARDS["plain"]) == "128 tokens"
    image = CARDS["patches"].encoder.embedding.image
    assert input_size(CARDS["patches"], 64) == f"{image} x {image} pixels"
    assert input_size(CARDS["image captions"], 64).endswith(" pixels and 64 tokens")
    assert input_size(CARDS["frames"], 64) == "64 frames"
    assert macs(CARDS["translation"]) == macs(CARDS["shared table"])


def test_a_part_of_an_attention_formula_that_occurs_twice_runs_once() -> None:
    scores = ("cosine", "Q", "K")
    formula = OpGraph(2, 3, ("add", ("matmul", scores, "V"), ("matmul", scores, "P")))
    maps = 4 * 7 * 6 * 6 + 7 * 6 * 6
    one_head = 7 * 3 * 7 + 2 * (7 * 7 * 3)
    assert sum(one.macs for one in formula.products(6, 6, 7, (0, 0))) == maps + 2 * one_head
