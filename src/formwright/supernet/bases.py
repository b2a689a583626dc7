"""Projections between a teacher's hidden states and those of narrower students, learned from text.

The teacher's vectors have principal axes, those of all boundaries between blocks together, and a student of width w
lives along the first w of them, scaled to a spread of 1 at each boundary. All boundaries share the axes, so that what a
layer adds its result to goes through a block as it goes through the teacher; all blocks share the scales at a boundary,
though they are trained apart, so that blocks of one width fit together as they are, and blocks of two widths through
one linear map. At the teacher's own width nothing is projected.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from formwright.nn.transformer import Transformer
from formwright.supernet.teacher_states import states
from formwright.train.batch import Batch

_LEAST = 1e-3  # of the largest spread: an axis that hardly anything lies along is not blown up further


@dataclass(frozen=True, eq=False)
class Affine:
    """A linear map with a bias."""

    weight: Tensor  # (outputs, inputs)
    bias: Tensor

    def __call__(self, x: Tensor) -> Tensor:
        """Map vectors (..., inputs)."""
        return F.linear(x, self.weight.to(x.device), self.bias.to(x.device))

    def after(self, first: "Affine") -> "Affine":
        """Give the map that does the same as `first` and then this one."""
        return Affine(self.weight @ first.weight, self.weight @ first.bias + self.bias)


@dataclass(frozen=True, eq=False)
class Basis:
    """The mean of a teacher's vectors at one boundary, orthogonal axes, and the spread along each."""

    mean: Tensor  # (width,)
    axes: Tensor  # (width, width), one a column, the most important first
    spreads: Tensor  # (width,)

    @property
    def width(self) -> int:
        """Give the width of the teacher."""
        return len(self.mean)

    @property
    def variance(self) -> float:
        """Give the mean variance of a feature: what a student that says the mean is off by, squared."""
        return float(self.spreads.square().mean())

    def norm(self, width: int) -> tuple[float, float]:
        """Give the scale and the shift with which a layer norm leaves a student's vectors about as they are."""
        if width < self.width:
            return 1.0, 0.0
        shift = float(self.mean.mean())
        return float((self.mean.square().mean() + self.variance - shift**2).clamp(min=0).sqrt()), shift

    def narrow(self, width: int) -> Affine:
        """Give the map from the teacher's vectors to a student's."""
        if width == self.width:
            return _identity(width)
        weight = (self.axes / self._scales)[:, :width].T.contiguous()
        return Affine(weight, -(weight @ self.mean))

    def widen(self, width: int) -> Affine:
        """Give the map from a student's vectors to the teacher's; narrowed again, they are what they were."""
        if width == self.width:
            return _identity(width)
        return Affine((self.axes * self._scales)[:, :width].contiguous(), self.mean)

    def joint(self, below: int, above: int) -> Affine:
        """Give the map from a student's vectors of one width to those of another."""
        return self.narrow(above).after(self.widen(below))

    @property
    def _scales(self) -> Tensor:
        return self.spreads.clamp(min=_LEAST * float(self.spreads.max()) or 1.0)


def fit_bases(teacher: Transformer, batches: Iterable[Batch], ends: Sequence[int]) -> list[Basis]:
    """Learn the bases of some boundaries from what a teacher says of some batches."""
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
    # each boundary counts alike, however large its vectors are
    axes = torch.linalg.eigh(torch.stack([one / one.trace().clamp(min=1e-12) for one in spread_out]).mean(0))[1].flip(1)
    return [_basis(mean, own, axes) for mean, own in zip(means, spread_out, strict=True)]


def to_tensors(bases: Sequence[Basis]) -> dict[str, Tensor]:
    """Give bases as tensors by name, as they are kept in a file."""
    return {
        f"{number}.{name}": getattr(basis, name).contiguous()
        for number, basis in enumerate(bases)
        for name in ("mean", "axes", "spreads")
    }


def from_tensors(tensors: Mapping[str, Tensor]) -> list[Basis]:
    """Read what `to_tensors` gave."""
    number = len(tensors) // 3
    return [Basis(*(tensors[f"{one}.{name}"] for name in ("mean", "axes", "spreads"))) for one in range(number)]


def _basis(mean: Tensor, covariance: Tensor, axes: Tensor) -> Basis:
    spreads = (axes.T @ covariance @ axes).diagonal().clamp(min=0).sqrt()
    return Basis(mean.float(), axes.float().contiguous(), spreads.float())


def _identity(width: int) -> Affine:
    return Affine(torch.eye(width), torch.zeros(width))
