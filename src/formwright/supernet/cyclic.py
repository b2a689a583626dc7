"""Cyclic channels: where the heads and channels of a narrower design begin, so that all are read about equally often.

With leading slices the first channels are read by every design and the last ones by the largest alone. ViTAS (Su et al.
2022) lets narrower designs begin elsewhere and go round behind the last channel. The paper gives no formula, and the
authors' code has slices from the left and from the right; here each size of a group has a place of its own, chosen by
how often the designs of the space have that size.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from formwright.arch.card import Card
from formwright.arch.declared import tensors_of
from formwright.arch.tensors import MEMORY, STREAM
from formwright.core.rng import derive
from formwright.space.space import Space
from formwright.supernet.hull import find_hull

_SAMPLED = 200  # designs by which the sizes of a space are known
_ROUNDS = 10  # in which sizes are placed again; two or three are enough

Group = tuple[str, int]  # the name of a group, and how many things the largest design has of it
Starts = tuple[tuple[int, int], ...]  # sizes in rising order, each with the first thing of it


@dataclass(frozen=True)
class CyclicOffsets:
    """Where fewer things of a group begin, by the size of the group in the largest design and the wanted size.

    That depends on nothing else: a design reads the same weights at every step, when it is judged and when it is
    delivered. So all things of a group can be read equally often where it has many sizes, or small ones: with three of
    four heads, or all four, one head is left out by all designs of three.
    """

    starts: tuple[tuple[Group, Starts], ...]

    @classmethod
    def of(cls, space: Space) -> "CyclicOffsets":
        """Find how often sampled designs of a space have which size, and place the sizes by it."""
        largest, found = find_hull(space).largest, dict[Group, Counter[int]]()
        for turn in range(_SAMPLED):
            card = space.card(space.sample(derive(0, "cyclic", turn), "gene"))
            for _, group, given, size in group_sizes(card, largest):
                found.setdefault((group, given), Counter())[size] += 1
        return cls(tuple((group, placed(group[1], counts)) for group, counts in sorted(found.items())))

    def __call__(self, group: str, given: int, wanted: int) -> int:
        """Give the first thing; a size that no sampled design had begins where the next larger one does."""
        known = dict(self.starts).get((group, given), ())
        return next((start for size, start in known if size >= wanted), 0)


def group_sizes(card: Card, largest: Card) -> set[tuple[str, str, int, int]]:
    """List the parts of a design with each of their groups, its size in the largest design and in this one.

    What a decoder reads counts as the stream of its encoder, which it is.
    """
    whole, found = tensors_of(largest), set[tuple[str, str, int, int]]()
    for name, tensor in tensors_of(card).items():
        for has, had in zip(tensor.axes, whole[name].axes if name in whole else (), strict=False):
            for factor, given in zip(has, had, strict=False):
                if factor.group:
                    group = STREAM if factor.group == MEMORY else factor.group
                    found.add((tensor.part, group, given.size, factor.size))
    return found


def placed(given: int, counts: Mapping[int, int]) -> Starts:
    """Place sizes on a ring of `given` things, so that these are read about equally often.

    Each size in turn goes where its things were read least, first behind the next smaller size; then each is taken out
    and placed again as long as that makes the visits more equal.
    """
    sizes = sorted(size for size in counts if size < given)
    visits, starts, end = np.zeros(given, np.int64), dict[int, int](), 0
    for size in sizes:
        starts[size] = _least_read(visits, size, end)
        end = (starts[size] + size) % given
        visits[_things(given, starts[size], size)] += counts[size]
    for _ in range(_ROUNDS):
        before = dict(starts)
        for size in sizes:
            visits[_things(given, starts[size], size)] -= counts[size]
            starts[size] = _least_read(visits, size, starts[size])
            visits[_things(given, starts[size], size)] += counts[size]
        if starts == before:
            break
    return tuple(starts.items())


def _things(given: int, start: int, size: int) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    return np.arange(start, start + size) % given


def _least_read(visits: "np.ndarray[tuple[int], np.dtype[np.int64]]", size: int, first: int) -> int:
    """Give the start of the row of things that were read least, the first one from `first` on and round."""
    ring = np.concatenate(([0], np.cumsum(np.concatenate((visits, visits)))))
    given = len(visits)
    read = ring[size : size + given] - ring[:given]
    return int((first + np.argmin(np.roll(read, -first))) % given)
