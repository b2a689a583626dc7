"""Saliency of fresh weights without data, after SynFlow (Tanaka et al., 2020)."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from formwright.arch.card import Card
from formwright.arch.layers import FrameEmbedding, PatchEmbedding, TokenEmbedding
from formwright.core.errors import EvaluationFailed, IllegalInput
from formwright.nn.build import build
from formwright.nn.settings import Settings

_TOKENS = 32


def synflow(card: Card, seed: int = 0) -> float:
    """Give the logarithm of the sum, over all weights, of |weight x derivative| of what flows through the model.

    All weights are made positive and norms are taken out, as a norm would undo every scale that the score is about.
    The flow of deep models is beyond the largest float32, so it is computed in float64.
    """
    model = build(card, Settings(dropout=0.0, eager=True), seed=seed, spread="width").double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.abs_()
    with _without_norms(model):
        model(*_inputs(card)).hidden.abs().sum().backward()
    total = sum(float((p.detach() * p.grad).abs().sum()) for p in model.parameters() if p.grad is not None)
    if not 0 < total < math.inf:
        raise EvaluationFailed(f"what flows through the model adds up to {total}, which has no finite logarithm")
    return math.log(total)


@contextmanager
def _without_norms(model: nn.Module) -> Iterator[None]:
    norms = [module for module in model.modules() if isinstance(module, nn.LayerNorm)]
    handles = [norm.register_forward_hook(_as_it_came) for norm in norms]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _as_it_came(_: nn.Module, inputs: tuple[Any, ...], __: Any) -> Any:
    return inputs[0]


def _inputs(card: Card) -> list[Tensor | None]:
    """Give one row that every card can read: different tokens, or an image or frames of ones."""
    first = _row(card.stacks[0].embedding)
    if len(card.stacks) == 1:
        return [first]
    return [first, None, None, _row(card.stacks[1].embedding)]


def _row(embedding: Any) -> Tensor:
    match embedding:
        case TokenEmbedding():
            return torch.arange(min(_TOKENS, embedding.length, embedding.vocabulary))[None]
        case PatchEmbedding():
            return torch.ones(1, embedding.channels, embedding.image, embedding.image, dtype=torch.float64)
        case FrameEmbedding():
            return torch.ones(1, _TOKENS, embedding.features, dtype=torch.float64)
    raise IllegalInput(f"synflow knows no input for the embedding {type(embedding).__name__}")
