"""Saliency of fresh weights without data, after SynFlow (Tanaka et al., 2020)."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from formwright.arch.card import Card
from formwright.arch.embeddings import Embedding
from formwright.core.errors import EvaluationFailed
from formwright.nn.build import build
from formwright.nn.settings import Settings
from formwright.nn.transformer import StackModule

_TOKENS = 32


def synflow(card: Card, seed: int = 0) -> float:
    """Return the logarithm of the sum over all weights of |weight x gradient| of the output.

    All weights are made positive and norms are taken out, as a norm would undo every scale that the score is about. The
    output of a deep model overflows, so it is rescaled to 1 after every layer and the logarithms of the factors are
    added: where a layer's output is proportional to its input, which holds for all but attention's and op graphs'
    scores, that is the same sum.
    """
    model = build(card, Settings(dropout=0.0, eager=True), seed=seed, spread="width").double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.abs_()
    with _flowing(model) as sizes:
        model(*_inputs(card)).hidden.abs().sum().backward()
    total = sum(float((p.detach() * p.grad).abs().sum()) for p in model.parameters() if p.grad is not None)
    if not 0 < total < math.inf:
        raise EvaluationFailed(f"what flows through the model adds up to {total}, which has no finite logarithm")
    return math.log(total) + sum(math.log(size) for size in sizes)


@contextmanager
def _flowing(model: nn.Module) -> Iterator[list[float]]:
    """Bypass norms and rescale the outputs of layers to 1; yield the list of factors."""
    sizes: list[float] = []

    def as_it_came(_: nn.Module, inputs: tuple[Any, ...], __: Tensor) -> Tensor:
        tensor: Tensor = inputs[0]
        return tensor

    def to_size_one(_: nn.Module, __: tuple[Any, ...], output: Tensor) -> Tensor:
        sizes.append(float(output.detach().abs().mean()) or 1.0)
        return output / sizes[-1]

    norms = [module.register_forward_hook(as_it_came) for module in model.modules() if isinstance(module, nn.LayerNorm)]
    stacks = [module for module in model.modules() if isinstance(module, StackModule)]
    layers = [layer.register_forward_hook(to_size_one) for stack in stacks for layer in stack.layers]
    try:
        yield sizes
    finally:
        for handle in (*norms, *layers):
            handle.remove()


def _inputs(card: Card) -> list[Tensor | None]:
    """Return one input row for the card: distinct tokens, or an image or frames of ones."""
    first = _row(card.stacks[0].embedding)
    if len(card.stacks) == 1:
        return [first]
    return [first, None, None, _row(card.stacks[1].embedding)]


def _row(embedding: Embedding) -> Tensor:
    shape = embedding.row_shape(_TOKENS)
    if embedding.symbols:
        return torch.arange(min(*shape, embedding.symbols))[None]
    return torch.ones(1, *shape, dtype=torch.float64)
