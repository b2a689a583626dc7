"""What the tests of torch layers share: strong weights, random vectors, masks, and how to run any design."""

from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from formwright.arch.card import Card
from formwright.arch.embeddings import FrameEmbedding, PatchEmbedding, TokenEmbedding
from formwright.arch.layers import Stack
from formwright.nn.build import skeleton
from formwright.nn.settings import Settings
from formwright.nn.transformer import Output, Transformer

M = TypeVar("M", bound=nn.Module)


def filled(module: M, seed: int = 0, spread: float = 0.3, dtype: torch.dtype = torch.float64) -> M:
    """Give every weight a random value, biases and norms too, so that a forgotten one is noticed."""
    generator = torch.Generator().manual_seed(seed)
    module.to_empty(device="cpu").to(dtype)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.normal_(0.0, spread, generator=generator)
        for part in module.modules():
            if isinstance(part, nn.LayerNorm):
                part.weight.add_(1.0)  # as in a trained model: near 1, so that signals survive many layers
    return module.eval()


def hollow(card: Card, settings: Settings | None = None) -> Transformer:
    """Build a model without memory, to be filled or to be counted."""
    return skeleton(card, settings)


def normal(*shape: int, seed: int = 1, dtype: torch.dtype = torch.float64) -> Tensor:
    """Draw a tensor of standard normal numbers."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def mask_of(lengths: list[int], tokens: int, *, left: bool = False) -> Tensor:
    """Mark the real tokens of sentences, at the start or (`left` padding) at the end of the row."""
    place = torch.arange(tokens)[None]
    count = torch.tensor(lengths)[:, None]
    return place >= tokens - count if left else place < count


def random_inputs(stack: Stack, batch: int, tokens: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    """Draw what the embedding of a stack reads: ids, pixels or frames."""
    generator = torch.Generator().manual_seed(seed)
    embedding = stack.embedding
    if isinstance(embedding, TokenEmbedding):
        return torch.randint(embedding.vocabulary, (batch, tokens), generator=generator)
    if isinstance(embedding, PatchEmbedding):
        return normal(batch, embedding.channels, embedding.image, embedding.image, seed=seed, dtype=dtype)
    assert isinstance(embedding, FrameEmbedding)
    return normal(batch, tokens, embedding.features, seed=seed, dtype=dtype)


def run(model: Transformer, batch: int = 2, tokens: int = 9, seed: int = 0) -> Output:
    """Run a model on random inputs, without padding."""
    inputs = random_inputs(model.card.stacks[0], batch, tokens, seed, next(model.parameters()).dtype)
    output: Output = model(inputs, **_targets(model.card, batch, tokens, seed))
    return output


def _targets(card: Card, batch: int, tokens: int, seed: int) -> dict[str, Any]:
    if card.encoder is None or card.decoder is None:
        return {}
    return {"targets": random_inputs(card.decoder, batch, tokens, seed + 1)}


def close(left: Tensor, right: Tensor, tolerance: float = 1e-10) -> bool:
    """Tell whether two tensors agree to `tolerance`, absolutely or relative to the largest number among them."""
    assert left.shape == right.shape, (left.shape, right.shape)
    left, right = left.detach(), right.detach()
    return bool((left - right).abs().max() <= tolerance * max(1.0, float(right.abs().max())))  # false for NaN
