import pytest
from numpy.random import default_rng
from tests.cost import slow_weights as slow
from tests.cost.cases import CARDS, OPERATIONS

from formwright.arch import ops
from formwright.arch.card import Card
from formwright.arch.layers import Block, Stack, TokenEmbedding
from formwright.arch.ops import Attention, LightweightConvolution, Operation, OpGraph, Transform
from formwright.core.errors import IllegalInput
from formwright.cost import params, params_attention, params_body, params_with_mlm_head
from formwright.cost.params import operation_params
from formwright.space.zoo import SPACES, load_card

SAMPLED = [name for name in SPACES.names() if not name.startswith("autobert-zero")]


def test_every_operation_of_the_vocabulary_is_counted() -> None:
    assert {type(operation) for operation in OPERATIONS} == set(ops.OPERATIONS)


@pytest.mark.parametrize("operation", OPERATIONS, ids=repr)
@pytest.mark.parametrize(("width", "output", "memory"), [(48, 48, 48), (48, 24, 40), (32, 96, 16)])
def test_an_operation_has_the_weights_one_can_list(operation: Operation, width: int, output: int, memory: int) -> None:
    weights = slow.operation_weights(operation, width, output, memory)
    assert operation_params(operation, width, output, memory) == slow.total(weights)


@pytest.mark.parametrize("name", CARDS)
def test_a_design_has_the_weights_one_can_list(name: str) -> None:
    card = CARDS[name]
    assert params(card) == slow.total(slow.card_weights(card))
    assert params_body(card) == slow.total(slow.body_weights(card))


@pytest.mark.parametrize("name", SAMPLED)
def test_sampled_designs_have_the_weights_one_can_list(name: str) -> None:
    space, rng = SPACES.get(name), default_rng(5)
    for _ in range(5):
        card = space.card(space.sample(rng, by="gene"))
        assert params(card) == slow.total(slow.card_weights(card))
        assert params_body(card) == slow.total(slow.body_weights(card))


def test_shared_tables_count_once_and_idle_parameters_only_in_the_whole() -> None:
    assert params(CARDS["translation"]) - params(CARDS["shared table"]) == 100 * 16
    assert params_body(CARDS["translation"]) == params_body(CARDS["shared table"])
    stack = CARDS["plain"].encoder
    busy, idle = Card(stack), Card(stack, idle=77)
    assert params(idle) - params(busy) == 77
    assert params_body(idle) == params_body(busy)


def test_the_language_model_head_replaces_the_pooler_and_is_tied_to_the_table() -> None:
    card, bare = CARDS["plain"], Card(CARDS["plain"].encoder)
    head = slow.linear(48, 48) + slow.norm(48) + [(100,)]
    assert params_with_mlm_head(card) == params_with_mlm_head(bare) == params(bare) + slow.total(head)
    card = CARDS["factorised"]
    head = slow.linear(48, 12) + slow.norm(12) + [(100,)]
    assert params_with_mlm_head(card) == params(card) + slow.total(head)


@pytest.mark.parametrize("name", ["patches", "frames"])
def test_a_language_model_head_needs_words(name: str) -> None:
    with pytest.raises(IllegalInput, match="needs a token embedding"):
        params_with_mlm_head(CARDS[name])


def test_attention_parameters_are_the_input_maps_of_all_attentions() -> None:
    blocks = (
        Block(48, Attention(3, 8, bias=False), (96,)),
        Block(48, OpGraph(2, 8, ("add", "Q", "P"))),
        Block(48, Transform("dft")),
        Block(48, LightweightConvolution(3, 4)),
    )
    assert params_attention(Card(Stack(TokenEmbedding(100, 48), blocks))) == 3 * 48 * 24 + 2 * (48 * 16 + 16)
    encoder = 2 * slow.total(slow.linear(48, 16) * 3)
    first = slow.linear(32, 16) * 3 + slow.linear(32, 16) + slow.linear(48, 16) * 2
    second = slow.linear(40, 16) * 3 + slow.linear(40, 48, False) + slow.linear(48, 48, False) * 2
    assert params_attention(CARDS["translation"]) == encoder + slow.total(first + second)
    assert params_attention(CARDS["cells"]) == 2 * slow.total(slow.linear(64, 16) * 3)
    # 512-wide maps without biases: one attention in each of 3 cells; two, and two that read the encoder, in each of 4
    assert params_attention(load_card("evolved-transformer-base")) == 3 * (3 + 4 * 4) * 512**2
