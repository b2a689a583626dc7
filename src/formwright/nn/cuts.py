"""Where the numbers of a smaller tensor lie in a larger one, worked out from the declared axes of both.

Fewer things of a group are the leading ones; kernels and tables of distances are cut around their centre. Heads that
are wider, or more, and need no more channels altogether are the same channels, regrouped (HAT).
"""

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import NamedTuple

import torch
from torch import Tensor as Weight

from formwright.arch.tensors import MEMORY, STREAM, Axis, Factor, Tensor

# From a group, its size in the larger design and in the smaller one: the first thing to take. Behind the last thing
# comes the first again. Plans are kept by it, so it is hashable and always answers the same.
Start = Callable[[str, int, int], int]


class Piece(NamedTuple):
    """Of `given` things take `wanted`, from `start` on and round."""

    given: int
    wanted: int
    start: int = 0

    def read(self, whole: Weight, axis: int) -> Weight:
        behind = self.start + self.wanted - self.given
        if behind <= 0:
            return whole.narrow(axis, self.start, self.wanted)
        return torch.cat((whole.narrow(axis, self.start, self.wanted - behind), whole.narrow(axis, 0, behind)), axis)


class Fold(NamedTuple):
    """A cut of one axis in the shape of its factors; channels of those in `regrouped` are grouped into other heads."""

    pieces: tuple[Piece, ...]
    regrouped: tuple[int, ...] = ()

    def read(self, whole: Weight, axis: int) -> Weight:
        last = axis + len(self.pieces) - 1
        x = whole.unflatten(axis, [piece.given for piece in self.pieces])
        if not self.regrouped:
            for place, piece in enumerate(self.pieces, axis):
                x = piece.read(x, place)
            return x.flatten(axis, last)
        apart = [axis + place for place in self.regrouped]
        row = list(range(last + 1 - len(apart), last + 1))
        wanted = [self.pieces[place].wanted for place in self.regrouped]
        x = x.movedim(apart, row).flatten(row[0], last).narrow(row[0], 0, prod(wanted))
        return x.unflatten(row[0], wanted).movedim(row, apart).flatten(axis, last)


@dataclass(frozen=True)
class TensorCut:
    """Read a tensor out of a larger one: a view where slices suffice, else a copy through which gradients flow."""

    slices: tuple[slice, ...] = ()
    folds: tuple[tuple[int, Fold], ...] = ()  # of the axes that no slice cuts
    regrouped: frozenset[str] = frozenset()  # groups whose channels are read as one row
    resized: frozenset[str] = frozenset()  # groups of which there are fewer things

    def __call__(self, whole: Weight) -> Weight:
        part = whole[self.slices] if self.slices else whole
        for axis, fold in self.folds:
            part = fold.read(part, axis)
        return part

    @torch.no_grad()
    def write(self, whole: Weight, part: Weight) -> None:
        """Put numbers where this cut reads them; all others stay."""
        if not self.folds:
            self(whole).copy_(part)  # what slices give is a view
            return
        places = self(torch.arange(whole.numel()).view(whole.shape)).flatten()
        whole.view(-1)[places.to(whole.device)] = part.flatten().to(whole)


def cuts(
    source: Mapping[str, Tensor], target: Mapping[str, Tensor], names: Mapping[str, str], start: Start | None = None
) -> dict[str, TensorCut]:
    """Find tensors of the target in those of the source; what the source does not hold is left out.

    `names` says in which tensor of the source each one of the target is looked for. Where the channels of a part are
    divided into other heads, its tensors that belong to single heads mean nothing to the new ones, and are left out.
    """
    found: dict[str, TensorCut] = {}
    regrouped: dict[str, set[str]] = defaultdict(set)  # by part
    for name, given in names.items():
        if given in source and (cut := cut_between(source[given], target[name], start)) is not None:
            found[name] = cut
            regrouped[target[name].part] |= cut.regrouped
    return {name: cut for name, cut in found.items() if not cut.resized & regrouped[target[name].part]}


def cut_between(source: Tensor, target: Tensor, start: Start | None = None) -> TensorCut | None:
    """Find one tensor in another; None where they mean different things, or where it holds too little."""
    return _cut(source.axes, target.axes, start) if source.kind == target.kind else None


@lru_cache(maxsize=1 << 14)
def _cut(source: tuple[Axis, ...], target: tuple[Axis, ...], start: Start | None) -> TensorCut | None:
    if len(source) != len(target):
        return None
    slices: list[slice] = []
    folds: list[tuple[int, Fold]] = []
    groups: dict[bool, set[str]] = {True: set(), False: set()}
    for axis, (given, wanted) in enumerate(zip(source, target, strict=True)):
        fold = _fold(given, wanted, start)
        if fold is None:
            return None
        larger = any(other.size > one.size for one, other in zip(given, wanted, strict=True))
        groups[larger] |= {one.group for one, other in zip(given, wanted, strict=True) if one.size != other.size}
        piece = fold.pieces[0]
        slices.append(slice(None))
        if len(fold.pieces) > 1 or piece.start + piece.wanted > piece.given:
            folds.append((axis, fold))
        elif piece.wanted < piece.given:
            slices[-1] = slice(piece.start, piece.start + piece.wanted)
    while slices and slices[-1] == slice(None):  # each takes time in every step
        slices.pop()
    return TensorCut(tuple(slices), tuple(folds), frozenset(groups[True] - {""}), frozenset(groups[False] - {""}))


def _fold(given: Axis, wanted: Axis, start: Start | None) -> Fold | None:
    """Slice every factor if none is larger than given; else regroup the leading ones, if they suffice."""
    if [factor.cut for factor in given] != [factor.cut for factor in wanted]:
        return None
    pairs = list(zip(given, wanted, strict=True))
    if all(other.size <= one.size for one, other in pairs):
        pieces = [_piece(one, other, start) for one, other in pairs]
        return Fold(_shortest([piece for piece in pieces if piece is not None])) if None not in pieces else None
    free = tuple(place for place, factor in enumerate(given) if factor.cut == "leading")
    if any(one.size != other.size for place, (one, other) in enumerate(pairs) if place not in free):
        return None
    row = Piece(prod(given[place].size for place in free), prod(wanted[place].size for place in free))
    if row.wanted > row.given:
        return None
    sizes = [Piece(one.size, other.size) for one, other in pairs]
    if free[-1] - free[0] < len(free):  # side by side: a slice of the row is the same
        return Fold(_shortest([*sizes[: free[0]], row, *sizes[free[-1] + 1 :]]))
    return Fold(tuple(sizes), free)


def _piece(given: Factor, wanted: Factor, start: Start | None) -> Piece | None:
    spare = given.size - wanted.size
    if not spare:
        return Piece(given.size, wanted.size)
    if given.cut == "whole" or (given.cut == "centred" and spare % 2):
        return None  # an even and an odd kernel have no common centre
    if given.cut == "centred":
        return Piece(given.size, wanted.size, spare // 2)
    group = STREAM if given.group == MEMORY else given.group  # what a decoder reads is what the encoder's layers give
    first = start(group, given.size, wanted.size) % given.size if start is not None and group else 0
    return Piece(given.size, wanted.size, first)


def _shortest(pieces: list[Piece]) -> tuple[Piece, ...]:
    """Join what is taken whole to the slower piece before it."""
    short: list[Piece] = []
    for piece in pieces:
        if short and piece.given == piece.wanted:
            short[-1] = Piece(*(number * piece.given for number in short[-1]))
        else:
            short.append(piece)
    return tuple(short)
