"""The declared tensors of a whole design, by the names of its weights."""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from types import MappingProxyType

from formwright.arch.card import Card
from formwright.arch.heads import HeadSpec
from formwright.arch.tensors import POOLED, STREAM, Factor, Tensor, linear, marked, under

_SHARED = "decoder.embedding.tokens.weight"  # the encoder's, where the design shares its token table


@lru_cache(maxsize=1 << 8)
def tensors_of(card: Card, head: HeadSpec | None = None) -> Mapping[str, Tensor]:
    """Return all tensors of a design by name, as `named_parameters()` of its model names and orders them.

    With a task head they are those of a `TaskModel`, whose names begin with `transformer` or `head`. Groups of heads
    and channels are named within a part, groups of a cell's states within a layer; `STREAM` is one group for each
    stack, and the others of `formwright.arch.tensors` one for each design.
    """
    found = list(_tensors(card))
    if head is not None:
        found = [*under("transformer", found), *under("head", head.tensors(card))]
    return MappingProxyType({tensor.name: tensor for tensor in found})


def _tensors(card: Card) -> Iterator[Tensor]:
    memory = card.encoder.output_width if card.encoder is not None else 0
    for name, stack in (("encoder", card.encoder), ("decoder", card.decoder)):
        if stack is not None:
            declared = under(name, stack.tensors(memory))
            yield from (one for one in declared if not (card.share_embedding and one.name == _SHARED))
    stream = Factor(card.output_width, STREAM)
    if card.pooler:
        yield from marked(linear("pooler", (stream,), (Factor(card.output_width, POOLED),)), "pooler")
    if card.classes:
        labels = Factor(card.classes, "labels", "whole")
        yield from marked(linear("classes", (stream,), (labels,)), "classes", (card.classes,))
