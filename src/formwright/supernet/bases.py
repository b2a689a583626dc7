"""Projections between a teacher's hidden states and those of narrower students, fitted to text.

The teacher's hidden states have principal axes, computed over all block boundaries together. A student of width w
uses the first w of them, scaled to unit variance at each boundary. All boundaries share the axes, so that residual
connections pass through a block as in the teacher; all blocks share the scales at a boundary although they are
trained separately, so that blocks of one width fit together directly and blocks of two widths through one linear map.
At the teacher's own width nothing is projected.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from formwright.nn.context import StackContext
from formwright.nn.transformer import Transformer
from formwright.train.streams import Batch


@dataclass(frozen=True)
class States:
    """A teacher's hidden states of one batch at some block boundaries, and the context for its layers."""

    hidden: tuple[Tensor, ...]  # (batch, tokens, width) each
    context: StackContext

    def distance(self, found: Tensor, boundary: int) -> Tensor:
        """Return the mean squared distance from the teacher at a boundary, without padding."""
        squares = (found - self.hidden[boundary]).square().mean(-1)
        mask = self.context.mask
        return squares.mean() if mask is None else squares[mask].mean()

    def real(self, boundary: int) -> Tensor:
        """Return the hidden states without padding, (tokens, width)."""
        found, mask = self.hidden[boundary], self.context.mask
        return found.flatten(0, 1) if mask is None else found[mask]


@torch.no_grad()
def states(teacher: Transformer, batch: Batch, ends: Sequence[int]) -> States:
    """Run a teacher up to the last of some layers and return the outputs of each; 0 is its embedding."""
    stack = teacher.encoder
    assert stack is not None
    mask = None if batch.mask is None else batch.mask.bool()
    context = StackContext(mask)
    x = stack.embedding(batch.inputs, context, batch.types)
    found = {0: x}
    for number, layer in enumerate(stack.layers[: max(ends)], start=1):
        x = layer(x, context)
        found[number] = x
    if stack.final_norm is not None and max(ends) == len(stack.layers):
        found[len(stack.layers)] = stack.final_norm(x)
    return States(tuple(found[end] for end in ends), context)


_LEAST = 1e-3  # of the largest spread: the smallest scale of an axis


@dataclass(frozen=True, eq=False)
class Affine:
    """A linear map with a bias."""

    weight: Tensor  # (outputs, inputs)
    bias: Tensor

    def __call__(self, x: Tensor) -> Tensor:
        """Map vectors (..., inputs)."""
        return F.linear(x, self.weight.to(x.device), self.bias.to(x.device))

    def after(self, first: "Affine") -> "Affine":
        """Return the map that does the same as `first` and then this one."""
        return Affine(self.weight @ first.weight, self.weight @ first.bias + self.bias)


@dataclass(frozen=True, eq=False)
class Basis:
    """The mean of a teacher's vectors at one boundary, orthogonal axes, and the spread along each."""

    mean: Tensor  # (width,)
    axes: Tensor  # (width, width), one a column, the most important first
    spreads: Tensor  # (width,)

    @property
    def width(self) -> int:
        """Return the width of the teacher."""
        return len(self.mean)

    @property
    def variance(self) -> float:
        """Return the mean variance of a feature: the squared error of predicting the mean."""
        return float(self.spreads.square().mean())

    def norm(self, width: int) -> tuple[float, float]:
        """Return the scale and the shift of a layer norm that leaves a student's hidden states about unchanged."""
        if width < self.width:
            return 1.0, 0.0
        shift = float(self.mean.mean())
        return float((self.mean.square().mean() + self.variance - shift**2).clamp(min=0).sqrt()), shift

    def narrow(self, width: int) -> Affine:
        """Return the map from the teacher's vectors to a student's."""
        if width == self.width:
            return _identity(width)
        weight = (self.axes / self._scales)[:, :width].T.contiguous()
        return Affine(weight, -(weight @ self.mean))

    def widen(self, width: int) -> Affine:
        """Return the map from a student's vectors to the teacher's; its inverse on the student's width."""
        if width == self.width:
            return _identity(width)
        return Affine((self.axes * self._scales)[:, :width].contiguous(), self.mean)

    def joint(self, below: int, above: int) -> Affine:
        """Return the map from a student's vectors of one width to those of another."""
        return self.narrow(above).after(self.widen(below))

    @property
    def _scales(self) -> Tensor:
        return self.spreads.clamp(min=_LEAST * float(self.spreads.max()) or 1.0)


def fit_bases(teacher: Transformer, batches: Iterable[Batch], ends: Sequence[int]) -> list[Basis]:
    """Learn the bases of some boundaries from a teacher's hidden states on some batches."""
    width, count = teacher.card.output_width, 0
    sums = [torch.zeros(width, dtype=torch.float64) for _ in ends]
    products = [torch.zeros(width, width, dtype=torch.float64) for _ in ends]
    for batch in batches:
        shown = states(teacher, batch, ends)
        for number in range(len(ends)):
            vectors = shown.real(number).double().cpu()
            sums[number] += vectors.sum(0)
            products[number] += vectors.T @ vectors
        count += len(vectors)
    means = [total / count for total in sums]
    spread_out = [product / count - torch.outer(mean, mean) for product, mean in zip(products, means, strict=True)]
    # boundaries have equal weight, whatever the size of their hidden states
    axes = torch.linalg.eigh(torch.stack([one / one.trace().clamp(min=1e-12) for one in spread_out]).mean(0))[1].flip(1)
    spreads = [(axes.T @ own @ axes).diagonal().clamp(min=0).sqrt().float() for own in spread_out]
    return [Basis(mean.float(), axes.float().contiguous(), own) for mean, own in zip(means, spreads, strict=True)]


def to_tensors(bases: Sequence[Basis]) -> dict[str, Tensor]:
    """Return bases as tensors by name, as they are kept in a file."""
    return {
        f"{number}.{name}": getattr(basis, name).contiguous()
        for number, basis in enumerate(bases)
        for name in ("mean", "axes", "spreads")
    }


def from_tensors(tensors: Mapping[str, Tensor]) -> list[Basis]:
    """Read what `to_tensors` gave."""
    number = len(tensors) // 3
    return [Basis(*(tensors[f"{one}.{name}"] for name in ("mean", "axes", "spreads"))) for one in range(number)]


def _identity(width: int) -> Affine:
    return Affine(torch.eye(width), torch.zeros(width))
