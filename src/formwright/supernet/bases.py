"""Projections between a teacher's hidden states and those of narrower students, and embeddings, fitted to text.

The teacher's hidden states have principal axes, computed over all block boundaries together. A student of width w
uses the first w of them, scaled to unit variance at each boundary. All boundaries share the axes, so that residual
connections pass through a block as in the teacher; all blocks share the scales at a boundary although they are
trained separately, so that blocks of one width fit together directly and blocks of two widths through one linear map.
At the teacher's own width nothing is projected.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn import functional as F

from formwright.arch.embeddings import TokenEmbedding
from formwright.nn.embedding import Tokens
from formwright.nn.settings import Settings
from formwright.nn.stack_context import StackContext
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


_RIDGE = 1e-6  # of the mean square of an input, for numerical stability


@dataclass(frozen=True, eq=False)
class NarrowEmbedding:
    """The weights of an embedding of one width, and its squared distance from the teacher's (share of the variance)."""

    weights: dict[str, Tensor]
    loss: float


def fit_embedding(
    teacher: Transformer, basis: Basis, width: int, learned: Iterable[Batch], held: Iterable[Batch]
) -> NarrowEmbedding:
    """Fit tables of a width to a teacher's: a linear map of the sum of its tables, fitted to its output.

    The norm comes after, as in the teacher, with a scale and a shift for each feature that are fitted too. At the
    teacher's own width the tables are the teacher's, where it has no map behind them. the loss is measured on the
    `held` batches.
    """
    own, card = _tables(teacher), teacher.card.stacks[0].embedding
    assert isinstance(card, TokenEmbedding)
    if width == basis.width and card.factorised is None:
        return NarrowEmbedding({name: tensor.clone() for name, tensor in own.state_dict().items()}, 0.0)
    sums, wanted = _pairs(teacher, basis, width, learned)
    # a norm divides by the length of a vector, so axes keep the teacher's scale before it
    aim = wanted * basis.spreads[:width] if card.norm and width < basis.width else wanted
    weight, bias = _least_squares(sums, aim)
    module = _mapped(own, replace(card, width=width, factorised=None), weight, bias)
    _fit_norm(module, sums @ weight + bias, wanted)
    return NarrowEmbedding(dict(module.state_dict()), _loss(teacher, basis, width, module, held))


def _tables(teacher: Transformer) -> Tokens:
    assert teacher.encoder is not None
    assert isinstance(teacher.encoder.embedding, Tokens)
    return teacher.encoder.embedding


def _pairs(teacher: Transformer, basis: Basis, width: int, batches: Iterable[Batch]) -> tuple[Tensor, Tensor]:
    """Give, token by token, the sum of the teacher's tables and the target of a student of the width."""
    own, narrow = _tables(teacher), basis.narrow(width)
    sums, wanted = [], []
    for batch in batches:
        shown = states(teacher, batch, (0,))
        found = _summed(own, batch, shown.context)
        sums.append(found.flatten(0, 1) if shown.context.mask is None else found[shown.context.mask])
        wanted.append(narrow(shown.real(0)))
    return torch.cat(sums).cpu(), torch.cat(wanted).cpu()


@torch.no_grad()
def _summed(own: Tokens, batch: Batch, context: StackContext) -> Tensor:
    x = own.tokens(batch.inputs)
    if own.types is not None:
        x = x + (own.types.weight[0] if batch.types is None else own.types(batch.types))
    found: Tensor = own.positions(x, context)
    return found


def _least_squares(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Return the weight (inputs, outputs) and the bias of the linear map of least squares."""
    x, y = x.double(), y.double()
    centred = x - x.mean(0)
    gram = centred.T @ centred
    gram += _RIDGE * gram.diagonal().mean() * torch.eye(len(gram), dtype=gram.dtype)
    weight = torch.linalg.solve(gram, centred.T @ (y - y.mean(0)))
    return weight.float(), (y.mean(0) - x.mean(0) @ weight).float()


@torch.no_grad()
def _mapped(own: Tokens, card: TokenEmbedding, weight: Tensor, bias: Tensor) -> Tokens:
    """Map every table; the bias is added to a table that every token uses."""
    module = Tokens(card, Settings(dropout=0.0)).eval()
    module.tokens.weight.copy_(own.tokens.weight.cpu() @ weight)
    shifted = module.tokens.weight
    if own.positions.table is not None and module.positions.table is not None:
        module.positions.table.copy_(own.positions.table.cpu() @ weight)
        shifted = module.positions.table
    if own.types is not None and module.types is not None:
        module.types.weight.copy_(own.types.weight.cpu() @ weight)
    shifted += bias
    return module


@torch.no_grad()
def _fit_norm(module: Tokens, mapped: Tensor, wanted: Tensor) -> None:
    """Scale and shift each normalised feature by least squares."""
    if module.norm is None:
        return
    x = F.layer_norm(mapped, (wanted.shape[1],))
    spread = (x - x.mean(0)).square().mean(0).clamp(min=1e-12)
    scale = ((x - x.mean(0)) * (wanted - wanted.mean(0))).mean(0) / spread
    module.norm.weight.copy_(scale)
    module.norm.bias.copy_(wanted.mean(0) - scale * x.mean(0))


@torch.no_grad()
def _loss(teacher: Transformer, basis: Basis, width: int, module: Tokens, batches: Iterable[Batch]) -> float:
    widen, squares, tokens = basis.widen(width), 0.0, 0
    for batch in batches:
        shown = states(teacher, batch, (0,))
        context = StackContext(None if shown.context.mask is None else shown.context.mask.cpu())
        found = module(batch.inputs.cpu(), context, None if batch.types is None else batch.types.cpu())
        own = len(shown.real(0))  # weighted by tokens without padding
        squares += own * float(shown.distance(widen(found).to(shown.hidden[0].device), 0))
        tokens += own
    return squares / tokens / basis.variance
