from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from tests.arch.random_cards import FAMILIES, random_card
from tests.nn.cases import MIXERS, block, stack
from tests.nn.helpers import filled, hollow, run
from torch import Tensor, nn

from formwright.arch.card import Card
from formwright.arch.embeddings import TokenEmbedding
from formwright.arch.layers import Block, Branch, Cell, Junction, Stack
from formwright.arch.ops import Attention, Convolution, CrossAttention, LightweightConvolution, SeparableConvolution
from formwright.core.errors import IllegalInput
from formwright.core.rng import derive
from formwright.nn.build import build, skeleton
from formwright.nn.operations.attention import SelfAttention
from formwright.nn.operations.convolution import DepthwiseSeparable, Lightweight, PlainConvolution
from formwright.nn.operations.op_graph import OpGraphAttention
from formwright.nn.settings import Settings
from formwright.nn.transformer import Transformer

CARD = Card(stack(tuple(block(mixer, "post") for mixer in MIXERS.values())), pooler=True, classes=3)


def weights(seed: int) -> dict[str, Tensor]:
    return build(CARD, seed=seed).state_dict()


def test_the_seed_alone_decides_the_weights() -> None:
    first, again, other = weights(1), weights(1), weights(2)
    assert list(first) == list(again) == list(other)
    assert all(torch.equal(first[name], again[name]) for name in first)
    differ = {name for name in first if not torch.equal(first[name], other[name])}
    assert differ == {name for name in first if not (name.endswith(".bias") or "norm." in name)}
    ours, numpys = torch.get_rng_state(), np.random.get_state(legacy=False)
    build(CARD, seed=5)
    skeleton(CARD)
    assert torch.equal(torch.get_rng_state(), ours)
    assert str(np.random.get_state(legacy=False)) == str(numpys)


def test_a_skeleton_has_the_names_and_shapes_of_the_model_and_no_memory() -> None:
    bones, model = skeleton(CARD), build(CARD)
    assert all(parameter.is_meta for parameter in bones.parameters())
    assert {n: p.shape for n, p in bones.named_parameters()} == {n: p.shape for n, p in model.named_parameters()}


def spread(tensor: Tensor) -> float:
    return float(tensor.detach().square().mean().sqrt())


@torch.no_grad()
def test_fresh_weights_are_as_bert_has_them() -> None:
    model = build(CARD)
    for module in model.modules():
        if isinstance(module, nn.LayerNorm):
            assert (module.weight == 1).all()
            assert (module.bias == 0).all()
        if isinstance(module, nn.Linear):
            by_chance = (2 * module.weight.numel()) ** -0.5  # how far the spread of so few draws is off
            assert abs(spread(module.weight) / 0.02 - 1) < 4 * by_chance
            assert module.bias is None or (module.bias == 0).all()
    assert all(parameter.isfinite().all() for parameter in model.parameters())


@torch.no_grad()
def test_fresh_convolutions_keep_the_size_of_their_input() -> None:
    cell_of = [Branch(0, operation, 64) for operation in (Convolution(5), SeparableConvolution(5, 1))]
    cells = tuple(Cell(64, (Junction(branch),)) for branch in (*cell_of, Branch(0, LightweightConvolution(5, 32), 64)))
    parts = list(build(Card(Stack(TokenEmbedding(9, 64), cells))).modules())
    (plain,) = (part for part in parts if isinstance(part, PlainConvolution))
    (separable,) = (part for part in parts if isinstance(part, DepthwiseSeparable))
    (light,) = (part for part in parts if isinstance(part, Lightweight))
    assert 0.9 < spread(plain.kernel) * (64 * 5) ** 0.5 < 1.1
    assert 0.85 < spread(separable.kernel) * 5**0.5 < 1.15
    assert 0.8 < spread(light.kernel) < 1.2


def test_fresh_wma_scores_are_nearly_sdp_scores() -> None:
    model = build(Card(stack((block(Attention(2, 16, "wma"), "post"),))))
    (attention,) = (module for module in model.modules() if isinstance(module, SelfAttention))
    assert 0.015 < spread(attention.bilinear.detach() - torch.eye(16) / 4) < 0.025


def test_a_model_forgets_no_setting() -> None:
    model = build(CARD, Settings(dropout=0.25, norm_epsilon=1e-5))
    assert all(module.eps == 1e-5 for module in model.modules() if isinstance(module, nn.LayerNorm))
    shares = [getattr(module, "dropout", None) for module in model.modules()]
    assert {share for share in shares if isinstance(share, float)} == {0.25}


def idle(model: Transformer) -> Iterator[str]:
    """Name the weights that no gradient needs to reach.

    They are an encoder that no layer of the decoder reads, and the inputs of an op graph, which may cancel out.
    """
    decoder = model.card.decoder
    read = [each for layer in (decoder.layers if decoder else ()) for _, each in layer.operations]
    shared = "encoder.embedding.tokens." if model.card.share_embedding else "nothing"
    for name, _ in model.named_parameters():
        unread = decoder is not None and not any(isinstance(each, CrossAttention) for each in read)
        if name.startswith("encoder.") and unread and not name.startswith(shared):
            yield name
    for place, module in model.named_modules():
        if isinstance(module, OpGraphAttention):
            yield from (f"{place}.inputs.{name}" for name, _ in module.inputs.named_parameters())


def total(model: Transformer, seed: int) -> Tensor:
    """Weigh all outputs of a model by random numbers, so that a norm at the end does not hide the gradient."""
    output = run(model, seed=seed)
    outputs = [output.hidden, *([output.pooled] if output.pooled is not None else [])]
    outputs += [model.classes(output.hidden[:, 0])] if model.classes is not None else []
    generator = torch.Generator().manual_seed(seed)
    return sum((part * torch.randn(part.shape, generator=generator)).sum() for part in outputs)  # type: ignore[return-value]


@pytest.mark.parametrize("family", FAMILIES)
def test_fresh_random_designs_run_forward_and_backward_without_nan(family: str) -> None:
    rng = derive(0, "backward", family)
    for seed in range(10):
        card = random_card(rng, family)
        model = build(card, seed=seed)
        total(model, seed).backward()  # type: ignore[no-untyped-call]
        assert run(model).hidden.isfinite().all(), card.to_json()
        for name, parameter in model.named_parameters():
            assert parameter.grad is None or parameter.grad.isfinite().all(), (name, card.to_json())


@pytest.mark.parametrize("family", FAMILIES)
def test_gradients_reach_every_weight_that_is_used(family: str) -> None:
    rng = derive(0, "reach", family)
    for seed in range(10):
        model = filled(hollow(random_card(rng, family)), spread=0.15)  # with larger weights gates close for good
        total(model, seed).backward()  # type: ignore[no-untyped-call]
        unused = set(idle(model))
        for name, parameter in model.named_parameters():
            reached = parameter.grad is not None and bool((parameter.grad != 0).any())
            assert reached or name in unused, (name, model.card.to_json())


def test_tokens_beside_waves_begin_as_large_as_these() -> None:
    table = TokenEmbedding(500, 64, positions="sinusoidal", norm=False)
    card = Card(decoder=Stack(table, (Block(64, Attention(4, 16), (64,)),), causal=True))
    model = build(card, spread="width")
    assert 0.9 < float(model.decoder.embedding.tokens(torch.arange(500)).detach().std()) < 1.1
    assert float(build(card).decoder.embedding.tokens.weight.detach().std()) == pytest.approx(0.02, rel=0.1)  # type: ignore[union-attr]


@pytest.mark.parametrize("width", [64, 10**11])
def test_weights_that_no_memory_holds_are_an_error_of_the_users(width: int) -> None:
    layer = Block(width, Attention(1, 64), (64,))
    with pytest.raises(IllegalInput, match="memory"):
        build(Card(Stack(TokenEmbedding(10**12, width), (layer,))))


NAN, INFINITE = float("nan"), float("inf")
WRONG = [("dropout", -0.1), ("dropout", 1.5), ("dropout", NAN), ("norm_epsilon", -1e-9), ("norm_epsilon", INFINITE)]


@pytest.mark.parametrize(("name", "value"), [*WRONG, ("pooler_activation", "swish"), ("pooling", "max")])
def test_settings_that_cannot_run_are_refused(name: str, value: Any) -> None:
    with pytest.raises(IllegalInput, match=f"^{name} is "):
        Settings(**{name: value})


def test_the_ends_of_a_range_are_settings() -> None:
    assert Settings(dropout=0, norm_epsilon=0).dropout == 0
    assert Settings(dropout=1, pooler_activation="relu", pooling="mean").pooling == "mean"
