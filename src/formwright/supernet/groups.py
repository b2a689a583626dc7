"""Groups of weights that can be removed together: attention heads, feed-forward channels and hidden units.

All of them follow from the declared tensors of a design: a group is made of the axes of a part that count the same
things. Scoring and reordering need not know how a layer is built.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import prod

from torch import Tensor

from formwright.arch.card import Card
from formwright.arch.declared import tensors_of
from formwright.arch.embeddings import TokenEmbedding
from formwright.arch.heads import HeadSpec
from formwright.arch.layers import Block, Stack
from formwright.arch.tensors import MEMORY, POOLED, STREAM
from formwright.arch.tensors import Tensor as Declared
from formwright.core.errors import IllegalInput
from formwright.space.elastic_parts import scored_parts, shares_hidden, stacks_of


@dataclass(frozen=True)
class MemberAxis:
    """An axis of a tensor that counts the members of a group, `outer` times over, with `inner` numbers for each.

    Tensors of more than one axis are scored.
    """

    name: str
    axis: int
    outer: int
    members: int
    inner: int
    is_scored: bool

    def apart(self, tensor: Tensor) -> Tensor:
        """Return the tensor with its members first: (members, all the rest)."""
        rows = tensor.movedim(self.axis, 0).reshape(self.outer, self.members, -1)
        return rows.movedim(1, 0).reshape(self.members, -1)

    def taken(self, tensor: Tensor, order: Tensor) -> Tensor:
        """Return the tensor with its members in another order."""
        before, after = tensor.shape[: self.axis], tensor.shape[self.axis + 1 :]
        apart = tensor.reshape(*before, self.outer, self.members, self.inner, *after)
        return apart.index_select(self.axis + 1, order.to(tensor.device)).reshape(tensor.shape)


@dataclass(frozen=True)
class Group:
    """Members of one kind that a smaller design leaves out; `weights` are scored, `biases` are only cut.

    `layer` counts the layers of a design, the encoder's first; it is -1 for what runs through all of them. `kind` is
    the name of the part in designs (heads, cross, feed_forward, mixer_experts), or hidden, decoder hidden or pooled.
    """

    layer: int
    kind: str
    members: int
    weights: tuple[MemberAxis, ...]
    biases: tuple[MemberAxis, ...]


def groups(card: Card, head: HeadSpec | None = None) -> list[Group]:
    """List the removable groups of the layers of a design, from the first layer up, the encoder's before the decoder's.

    `head` is the head that the model carries; without one, tensors have the names of a bare transformer.
    """
    by_part: dict[tuple[str, str], list[MemberAxis]] = {}
    for one, group, axis in axes_of(tensors_of(card, head).values()):
        by_part.setdefault((one.part, group), []).append(axis)
    prefix, found, number = "" if head is None else "transformer.", [], 0
    for key, stack in stacks_of(card).items():
        for index, layer in enumerate(stack.layers):
            for part in scored_parts(layer):
                axes = by_part[f"{prefix}{key}.layers.{index}.{part.part}", part.group]
                found.append(_group(number, part.name, axes))
            number += 1
    if not found:
        raise IllegalInput(f"no layer of this {card.family} design has heads or channels that could be left out")
    return found


def stream_groups(card: Card, head: HeadSpec | None) -> list[Group]:
    """List what smaller hidden sizes leave out: the numbers between the layers of a stack, and outputs of the pooler.

    The encoder and the decoder of a translator have a group each, unless they share a token table: then there is one.
    The pooler's outputs are as many as the hidden size, but have an order of their own; they are a group where a head
    reads them. Matrices and tables are scored, norms and biases are only cut.
    """
    stacks = stacks_of(card)
    for key, stack in stacks.items():
        _check_stream(key, stack)
    if card.share_embedding and not shares_hidden(card) and len({_is_narrow(one) for one in card.stacks}) > 1:
        raise IllegalInput("the token table is narrow for one of the stacks that share it: it has no order of its own")
    first, last = (list(stacks)[place] for place in (0, -1))
    found: dict[str, list[MemberAxis]] = {key: [] for key in (first, last, POOLED)}
    for one, group, axis in axes_of(tensors_of(card, head).values()):
        where = one.part.removeprefix("transformer.").split(".")[0]
        if group == STREAM:  # what stands above the stacks reads the last one
            found[first if shares_hidden(card) or where == first else last].append(axis)
        elif group in (MEMORY, POOLED):
            found[first if group == MEMORY else POOLED].append(axis)
    made = [_group(-1, "hidden", found[first])]
    if first != last and not shares_hidden(card):
        made.append(_group(-1, "decoder hidden", found[last]))
    pooled = _group(-1, "pooled", found[POOLED]) if found[POOLED] else None
    return [*made, pooled] if pooled is not None and len(pooled.weights) > 1 else made


def _check_stream(key: str, stack: Stack) -> None:
    """Refuse a stack whose hidden size has a fixed order."""
    embedding = stack.embedding
    if any(layer.width != embedding.width or not isinstance(layer, Block) for layer in stack.layers):
        raise IllegalInput(f"the hidden size is scored where no layer of the {key} is a cell and all are equally wide")
    for index, layer in enumerate(stack.layers):
        for _, operation in layer.operations:
            if operation.ordered:
                raise IllegalInput(
                    f"layer {index} of the {key} has a {operation.TYPE}, which reads the numbers of the hidden size in "
                    "a fixed order, so they cannot be put into another"
                )
    if embedding.positions == "sinusoidal" and not _is_narrow(stack):
        raise IllegalInput("sinusoidal positions stand in a fixed order, so the hidden size cannot be put into another")


def _is_narrow(stack: Stack) -> bool:
    """Tell whether a map stands between the token tables and the layers."""
    return isinstance(stack.embedding, TokenEmbedding) and stack.embedding.factorised is not None


def axes_of(tensors: Iterable[Declared]) -> Iterator[tuple[Declared, str, MemberAxis]]:
    """List the factors of all axes of some tensors with their tensors and groups."""
    for one in tensors:
        for axis, factors in enumerate(one.axes):
            for place, factor in enumerate(factors):
                outer, inner = (prod(other.size for other in some) for some in (factors[:place], factors[place + 1 :]))
                found = MemberAxis(one.name, axis, outer, factor.size, inner, is_scored=len(one.axes) > 1)
                yield one, factor.group, found


def _group(layer: int, kind: str, axes: Sequence[MemberAxis]) -> Group:
    sizes = {axis.members for axis in axes}
    if len(sizes) > 1:
        raise IllegalInput(f"{kind} is scored where it is of one size, and here it has the sizes {sorted(sizes)}")
    (members,) = sizes
    weights, biases = (tuple(axis for axis in axes if axis.is_scored == scored) for scored in (True, False))
    return Group(layer, kind, members, weights, biases)
