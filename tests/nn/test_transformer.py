import pytest
import torch
from tests.nn.cases import MIXERS, block, stack
from tests.nn.helpers import close, filled, mask_of, normal, random_inputs, run
from torch.nn import functional as F

from formwright.arch.card import Card
from formwright.arch.embeddings import PatchEmbedding, TokenEmbedding
from formwright.arch.layers import Block, Stack
from formwright.arch.ops import Attention, CrossAttention, Relative
from formwright.core.errors import IllegalInput
from formwright.nn.build import build
from formwright.nn.settings import Settings
from formwright.nn.stack_context import StackContext
from formwright.nn.transformer import Transformer, first_tokens

SDP = block(MIXERS["sdp"], "post")
READER = block(MIXERS["sdp"], "post", CrossAttention(2, 8, layers=2))
TABLE = TokenEmbedding(50, 16)
ENCODER = Card(stack((SDP, SDP)), pooler=True, classes=3)
DECODER = Card(decoder=stack((SDP, SDP), causal=True))
BOTH = Card(stack((SDP, SDP)), stack((READER, READER), causal=True))
IMAGE = PatchEmbedding(8, 4, 16)
GRID = Block(16, Attention(2, 8, relative=Relative(6, axes=2, values=True)), (24,))


def model_of(card: Card, settings: Settings | None = None) -> Transformer:
    return filled(Transformer(card, settings))


@torch.no_grad()
def test_a_stack_runs_its_layers_one_after_the_other() -> None:
    model = model_of(ENCODER)
    output, ids = run(model), random_inputs(ENCODER.stacks[0], 2, 9)
    x = model.encoder.embedding(ids, StackContext())
    for layer, result in zip(model.encoder.layers, output.layers, strict=True):
        x = layer(x, StackContext())
        assert close(result, x)
    assert output.hidden is output.layers[-1]
    assert output.memory == ()


@torch.no_grad()
def test_layers_of_unequal_width_are_joined_by_linear_maps() -> None:
    narrow = Block(8, Attention(1, 4), (12,))
    model = model_of(Card(Stack(TABLE, (SDP, narrow, narrow, SDP), final_norm=True)))
    shapes = {name: tuple(weight.shape) for name, weight in model.encoder.projections.named_parameters()}
    assert shapes == {"1.weight": (8, 16), "1.bias": (8,), "3.weight": (16, 8), "3.bias": (16,)}
    output = run(model)
    assert [layer.shape[-1] for layer in output.layers] == [16, 8, 8, 16]
    # the last output is normalised: taking weight and bias away leaves mean 0 and variance 1
    plain = (output.hidden - model.encoder.final_norm.bias) / model.encoder.final_norm.weight
    assert close(plain.mean(-1), torch.zeros(2, 9, dtype=torch.float64))
    assert close(plain.square().mean(-1), torch.ones(2, 9, dtype=torch.float64))


@torch.no_grad()
def test_projections_may_stand_at_every_joint_and_behind_the_last_layer() -> None:
    narrow = Block(8, Attention(1, 4), (12,))
    card = Card(Stack(TABLE, (narrow, narrow), joints="always", out=16, final_norm=True))
    model, ids = model_of(card), random_inputs(card.stacks[0], 2, 9)
    stack, context = model.encoder, StackContext()
    x = stack.embedding(ids, context)
    for index, layer in enumerate(stack.layers):
        x = layer(stack.projections[str(index)](x), context)
    assert close(run(model).hidden, stack.final_norm(stack.projections["2"](x)))


@torch.no_grad()
@pytest.mark.parametrize("activation", ["tanh", "gelu", "relu"])
def test_the_pooler_maps_the_first_real_token(activation: str) -> None:
    model = model_of(ENCODER, Settings(pooler_activation=activation))  # type: ignore[arg-type]
    ids, mask = random_inputs(ENCODER.stacks[0], 2, 9), mask_of([9, 4], 9, left=True)
    output = model(ids, mask)
    mapped = torch.stack((output.hidden[0, 0], output.hidden[1, 5])) @ model.pooler.weight.T + model.pooler.bias
    expected = {"tanh": torch.tanh(mapped), "gelu": F.gelu(mapped), "relu": torch.relu(mapped)}[activation]
    assert close(output.pooled, expected)
    assert run(model_of(DECODER)).pooled is None


def test_the_first_tokens_are_those_that_are_real() -> None:
    hidden = normal(3, 5, 4)
    assert torch.equal(first_tokens(hidden, None), hidden[:, 0])
    assert torch.equal(first_tokens(hidden, mask_of([5, 2, 1], 5)), hidden[:, 0])
    assert torch.equal(first_tokens(hidden, mask_of([5, 2, 1], 5, left=True)), hidden[range(3), [0, 3, 4]])


@torch.no_grad()
def test_types_reach_the_stack_that_reads_the_inputs() -> None:
    for card in (ENCODER, DECODER):
        model, ids = model_of(card), random_inputs(card.stacks[0], 2, 5)
        assert not close(model(ids, types=torch.ones_like(ids)).hidden, model(ids).hidden)
    model, ids = model_of(BOTH), random_inputs(BOTH.stacks[0], 2, 5)
    plain, typed = model(ids, targets=ids), model(ids, types=torch.ones_like(ids), targets=ids)
    assert not close(typed.memory[0], plain.memory[0])


@torch.no_grad()
def test_a_decoder_reads_the_last_layers_of_its_encoder() -> None:
    model, ids = model_of(BOTH), random_inputs(BOTH.stacks[0], 2, 5)
    output = model(ids, targets=ids)
    alone = model_of(Card(BOTH.stacks[0]))
    alone.load_state_dict({name: value for name, value in model.state_dict().items() if name.startswith("encoder.")})
    for layer, memory in zip(alone(ids).layers, output.memory, strict=True):
        assert close(memory, layer)
    assert len(output.layers) == 2
    other = model(random_inputs(BOTH.stacks[0], 2, 5, seed=3), targets=ids)
    assert not close(other.hidden, output.hidden)


def test_encoder_decoders_need_targets_and_may_share_a_table() -> None:
    with pytest.raises(IllegalInput, match="targets"):
        model_of(BOTH)(random_inputs(BOTH.stacks[0], 2, 5))
    model = build(Card(BOTH.stacks[0], BOTH.stacks[1], share_embedding=True))
    assert model.encoder.embedding.tokens.weight is model.decoder.embedding.tokens.weight  # type: ignore[union-attr]
    assert model.encoder.embedding.positions is not model.decoder.embedding.positions
    run(model).hidden.square().sum().backward()  # type: ignore[no-untyped-call]
    assert model.encoder.embedding.tokens.weight.grad is not None  # type: ignore[union-attr]


@torch.no_grad()
@pytest.mark.parametrize(
    "card", [Card(Stack(IMAGE, (GRID,))), Card(decoder=Stack(IMAGE, (GRID,), causal=True))], ids=["encoder", "decoder"]
)
def test_images_bring_their_grid(card: Card) -> None:
    assert run(model_of(card)).hidden.shape == (2, 5, 16)


@torch.no_grad()
@pytest.mark.parametrize("kind", [torch.bool, torch.long, torch.float32])
def test_a_mask_may_be_of_any_type(kind: torch.dtype) -> None:
    model, ids, mask = model_of(ENCODER), random_inputs(ENCODER.stacks[0], 2, 5), mask_of([5, 2], 5)
    assert torch.equal(model(ids, mask.to(kind)).hidden, model(ids, mask).hidden)


@torch.no_grad()
@pytest.mark.parametrize("card", [ENCODER, DECODER, BOTH, Card(Stack(IMAGE, (GRID,)))])
def test_dropout_acts_in_training_only(card: Card) -> None:
    model = model_of(card, Settings(dropout=0.3))
    assert torch.equal(run(model).hidden, run(model).hidden)
    model.train()
    assert not torch.equal(run(model).hidden, run(model).hidden)
    quiet = model_of(card, Settings(dropout=0.0))
    assert torch.equal(run(quiet.train()).hidden, run(quiet.eval()).hidden)
