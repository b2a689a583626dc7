"""Saliency without data, for every kind of design."""

import math
import sys
from statistics import mean
from typing import Any

import numpy as np
import pytest
import torch
from tests.evaluate.toy import card
from tests.nn.cases import decoders, encoders
from torch import nn

from formwright.arch.card import Card
from formwright.arch.embeddings import FrameEmbedding, PatchEmbedding, TokenEmbedding
from formwright.arch.layers import Block, Stack
from formwright.arch.ops import Attention, CrossAttention, Identity, SeparableConvolution
from formwright.core.errors import EvaluationFailed
from formwright.core.rng import derive
from formwright.cost import params
from formwright.evaluate.proxies.synflow import synflow
from formwright.nn.build import build
from formwright.nn.settings import Settings
from formwright.space.zoo import CARDS, SPACES

BLOCK = Block(16, Attention(2, 8), (32,))
ABOVE = Block(16, Attention(2, 8), (32,), cross=CrossAttention(2, 8))
TABLE = TokenEmbedding(32, 16, length=12)
FAMILIES = {
    "encoder": Card(encoder=Stack(TABLE, (BLOCK,))),
    "decoder": Card(decoder=Stack(TABLE, (BLOCK,), causal=True)),
    "encoder-decoder": Card(Stack(TABLE, (BLOCK,)), Stack(TABLE, (ABOVE,), causal=True), share_embedding=True),
    "vision": Card(encoder=Stack(PatchEmbedding(8, 2, 16, channels=1), (BLOCK,))),
    "frames": Card(encoder=Stack(FrameEmbedding(10, 16), (BLOCK,))),
    "pooler": Card(encoder=Stack(TABLE, (BLOCK,)), pooler=True),
    "no norm, factorised": Card(encoder=Stack(TokenEmbedding(32, 16, 8, length=3, norm=False), (BLOCK,))),
}
SMALL = {**encoders(), **decoders(), **FAMILIES}


@pytest.mark.parametrize("name", SMALL)
def test_it_is_finite_for_every_operation_and_family(name: str) -> None:
    assert math.isfinite(synflow(SMALL[name]))


@pytest.mark.parametrize("name", FAMILIES)
def test_the_seed_alone_decides(name: str) -> None:
    design = FAMILIES[name]
    torch.manual_seed(1)
    first = synflow(design, 3)
    torch.manual_seed(2)
    state, random = torch.get_rng_state(), repr(np.random.get_state())
    assert synflow(design, 3) == first
    assert synflow(design, 4) != first
    assert torch.equal(torch.get_rng_state(), state)
    assert repr(np.random.get_state()) == random


def test_it_leaves_torch_as_it_was() -> None:
    before = (torch.get_default_dtype(), torch.is_grad_enabled(), torch.get_num_threads())
    norm, vector = nn.LayerNorm(4), torch.arange(4.0)
    normed = norm(vector)
    synflow(FAMILIES["encoder"])
    assert (torch.get_default_dtype(), torch.is_grad_enabled(), torch.get_num_threads()) == before
    assert torch.equal(norm(vector), normed)


def test_it_grows_with_depth_and_width_on_average() -> None:
    def average(designs: list[Card]) -> float:
        return mean(synflow(design, seed) for design in designs for seed in range(3))

    depths = [average([card(*[width] * depth) for width in (16, 32)]) for depth in (1, 2, 4)]
    widths = [average([card(*[width] * depth) for depth in (1, 2, 4)]) for width in (16, 32, 64)]
    assert depths == sorted(depths)
    assert widths == sorted(widths)


def test_a_deep_design_has_a_finite_score_and_every_layer_adds_as_much() -> None:
    one, two, many = (synflow(Card(encoder=Stack(TABLE, (BLOCK,) * depth))) for depth in (20, 40, 200))
    assert many - two == pytest.approx(8 * (two - one), rel=0.05)
    assert many > math.log(sys.float_info.max)  # more than any number could hold


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_where_outputs_grow_with_inputs_it_is_the_plain_sum(norm: str) -> None:
    layers = (Block(16, SeparableConvolution(3), (32,), "relu", norm), Block(16, Identity(), (24,), "relu", norm))  # type: ignore[arg-type]
    design = Card(encoder=Stack(TABLE, layers * 2, final_norm=norm == "pre"))
    model = build(design, Settings(dropout=0.0), seed=5, spread="width").double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.abs_()
    for module in model.modules():
        if isinstance(module, nn.LayerNorm):
            module.register_forward_hook(lambda _, inputs, __: inputs[0])
    model(torch.arange(12)[None]).hidden.sum().backward()
    total = sum(float((p.detach() * p.grad).sum()) for p in model.parameters() if p.grad is not None)
    assert synflow(design, 5) == pytest.approx(math.log(total), rel=1e-9)


@pytest.mark.parametrize(("weight", "total"), [(0.0, "0"), (math.nan, "nan")])
def test_a_model_without_flow_cannot_be_scored(weight: float, total: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def filled(*arguments: Any, **options: Any) -> nn.Module:
        model = build(*arguments, **options)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.fill_(weight)
        return model

    monkeypatch.setattr("formwright.evaluate.proxies.synflow.build", filled)
    with pytest.raises(EvaluationFailed, match=rf"adds up to {total}.*, which has no finite logarithm"):
        synflow(card(32))


@pytest.mark.slow
@pytest.mark.timeout(180)  # the largest spaces have no design below 50 million weights
@pytest.mark.parametrize("name", SPACES.names())
@pytest.mark.long
def test_it_is_finite_in_every_space_of_the_zoo(name: str) -> None:
    space = SPACES.get(name)
    drawn = [space.card(space.sample(derive(0, name, number))) for number in range(12)]
    assert math.isfinite(synflow(min(drawn, key=params)))


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in CARDS.names() if params(CARDS.get(name)) < 12_000_000])
def test_it_is_finite_for_the_smaller_published_designs(name: str) -> None:
    assert math.isfinite(synflow(CARDS.get(name)))
