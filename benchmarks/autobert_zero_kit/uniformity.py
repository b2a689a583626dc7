"""How alike the tokens of a text become, layer by layer (the paper's Figure 5)."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from formwright.train.judge import batch_of
from formwright.train.prepare import Prepared

_BATCH = 64


def uniformity(transformer: nn.Module, prepared: Prepared, rows: int) -> dict[str, list[float]]:
    """Give, for each layer, the mean of both measures over the first validation rows of a task."""
    transformer.eval()
    residuals, cosines = list[list[float]](), list[list[float]]()
    numbers = np.arange(min(rows, len(prepared.validation.examples)))
    with torch.inference_mode():
        for some in np.array_split(numbers, max(1, len(numbers) // _BATCH)):
            batch = batch_of(prepared, prepared.validation, some)
            layers = transformer(batch.inputs, batch.mask, batch.types).layers
            real = torch.ones_like(batch.inputs) if batch.mask is None else batch.mask
            for row, length in enumerate(real.sum(1).tolist()):
                residuals.append([relative_residual(layer[row, :length]) for layer in layers])
                cosines.append([mean_cosine(layer[row, :length]) for layer in layers])
    return {"residual": np.mean(residuals, axis=0).tolist(), "cosine": np.mean(cosines, axis=0).tolist()}


def relative_residual(tokens: Tensor) -> float:
    """Give how far (tokens, width) vectors are from all being the same, relative to their size; 0 where they are.

    The norm is that of Dong et al. (2021): the root of the largest column sum times the largest row sum.
    """
    return _norm(tokens - tokens.mean(0)) / _norm(tokens)


def mean_cosine(tokens: Tensor) -> float:
    """Give the mean cosine similarity of all pairs of different tokens."""
    unit = nn.functional.normalize(tokens, dim=-1)
    number = len(tokens)
    return float(((unit @ unit.T).sum() - number) / (number * (number - 1)))


def _norm(matrix: Tensor) -> float:
    sizes = matrix.abs()
    return float((sizes.sum(0).max() * sizes.sum(1).max()).sqrt())
