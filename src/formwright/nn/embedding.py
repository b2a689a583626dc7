"""From tokens, images or frames to the vectors that enter the first layer."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from formwright.arch.embeddings import Embedding, FrameEmbedding, PatchEmbedding, TokenEmbedding
from formwright.core.errors import IllegalInput
from formwright.nn.operations.attention import dropout
from formwright.nn.settings import OwnStart, Settings, Spread
from formwright.nn.stack_context import StackContext


def sinusoidal(positions: Tensor, width: int, dtype: torch.dtype) -> Tensor:
    """Return the sine and cosine vectors of positions (batch, tokens): (batch, tokens, width)."""
    half = (width + 1) // 2
    rates = torch.exp(torch.arange(half, device=positions.device) * (-math.log(10_000.0) / max(half - 1, 1)))
    angles = positions[..., None] * rates
    return torch.cat((angles.sin(), angles.cos()), -1)[..., :width].to(dtype)


class Positions(nn.Module):
    """Add learned or sinusoidal positions; relative ones live in the layers."""

    def __init__(self, kind: str, length: int, width: int) -> None:
        super().__init__()
        self.kind = kind
        self.table = nn.Parameter(torch.empty(length, width)) if kind == "learned" else None

    def forward(self, x: Tensor, context: StackContext) -> Tensor:
        if self.table is not None:
            if context.mask is None:
                if (last := context.past + x.shape[1]) > len(self.table):
                    raise IllegalInput(f"got {last} tokens; the design has positions for {len(self.table)}")
                return x + self.table[context.past : last]
            return x + F.embedding(context.positions(x), self.table)
        return x + sinusoidal(context.positions(x), x.shape[-1], x.dtype) if self.kind == "sinusoidal" else x


class ScaledTable(nn.Embedding, OwnStart):
    """Scale vectors by the root of their width, as the Transformer does: next to waves of size 1 they would not count.

    The table itself, by which heads predict tokens, is not scaled.
    """

    def forward(self, ids: Tensor) -> Tensor:
        return super().forward(ids) * self.embedding_dim**0.5

    def start_spread(self, name: str, spread: Spread) -> float | None:
        return float(self.embedding_dim**-0.5) if spread == "width" else None


class Tokens(nn.Module):
    """Sum the vectors of tokens, positions and types; normalise; widen where the tables are narrow."""

    def __init__(self, embedding: TokenEmbedding, settings: Settings) -> None:
        super().__init__()
        width = embedding.table_width
        scaled = embedding.positions == "sinusoidal" and not embedding.norm
        self.tokens = (ScaledTable if scaled else nn.Embedding)(embedding.vocabulary, width)
        self.positions = Positions(embedding.positions, embedding.length, width)
        self.types = nn.Embedding(embedding.types, width) if embedding.types else None
        self.norm = nn.LayerNorm(width, settings.norm_epsilon) if embedding.norm else None
        self.widen = nn.Linear(width, embedding.width) if embedding.factorised else None
        self.dropout = settings.dropout

    def forward(self, ids: Tensor, context: StackContext, types: Tensor | None = None) -> Tensor:
        x = self.tokens(ids)  # (batch, tokens, table width)
        if self.types is not None:
            x = x + (self.types.weight[0] if types is None else self.types(types))
        x = self.positions(x, context)
        x = self.norm(x) if self.norm is not None else x
        x = dropout(x, self.dropout, self.training)
        return self.widen(x) if self.widen is not None else x


class Patches(nn.Module):
    """Map the patches of an image (batch, channels, side, side) to vectors, behind the class tokens."""

    def __init__(self, embedding: PatchEmbedding, settings: Settings) -> None:
        super().__init__()
        self.patch = embedding.patch
        self.pixels = nn.Linear(embedding.channels * embedding.patch**2, embedding.width)
        count = embedding.class_tokens
        self.class_token = nn.Parameter(torch.empty(count, embedding.width)) if count else None
        self.positions = Positions(embedding.positions, embedding.tokens, embedding.width)
        self.dropout = settings.dropout

    def forward(self, image: Tensor, context: StackContext, types: Tensor | None = None) -> Tensor:
        rows = image.unfold(2, self.patch, self.patch).unfold(3, self.patch, self.patch)
        x = self.pixels(rows.permute(0, 2, 3, 1, 4, 5).flatten(3).flatten(1, 2))  # (batch, patches, width)
        if self.class_token is not None:
            x = torch.cat((self.class_token.expand(x.shape[0], -1, -1), x), 1)
        return dropout(self.positions(x, context), self.dropout, self.training)


class Frames(nn.Module):
    """Normalise frames (batch, frames, features) and map them to vectors."""

    def __init__(self, embedding: FrameEmbedding, settings: Settings) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(embedding.features, settings.norm_epsilon)
        self.features = nn.Linear(embedding.features, embedding.width)
        self.positions = Positions(embedding.positions, embedding.length, embedding.width)
        self.dropout = settings.dropout

    def forward(self, frames: Tensor, context: StackContext, types: Tensor | None = None) -> Tensor:
        x = self.positions(self.features(self.norm(frames)), context)
        return dropout(x, self.dropout, self.training)


def embedding_module(embedding: Embedding, settings: Settings) -> nn.Module:
    if isinstance(embedding, TokenEmbedding):
        return Tokens(embedding, settings)
    return Patches(embedding, settings) if isinstance(embedding, PatchEmbedding) else Frames(embedding, settings)
