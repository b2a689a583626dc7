"""Narrower token embeddings that approximate a teacher's, fitted to text by least squares."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn import functional as F

from formwright.arch.layers import TokenEmbedding
from formwright.nn.context import StackContext
from formwright.nn.embedding import Tokens
from formwright.nn.settings import Settings
from formwright.nn.transformer import Transformer
from formwright.supernet.bases import Basis, states
from formwright.train.streams import Batch

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
