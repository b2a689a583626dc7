"""Cyclic channels: where the heads and channels of a narrower design begin, so that all are read about equally often.

With leading slices the first channels are read by every design and the last ones by the largest alone. ViTAS (Su et al.
2022) lets narrower designs begin elsewhere and go round behind the last channel. The paper gives no formula, and the
authors' code has slices from the left and from the right; here the sizes of a group are laid end to end.
"""

from dataclasses import dataclass

from formwright.arch.declared import tensors_of
from formwright.core.rng import derive
from formwright.space.space import Space

_SAMPLED = 200  # designs by which the sizes of a space are known


@dataclass(frozen=True)
class CyclicOffsets:
    """Where fewer things of a group begin, from the sizes that a space has of each group, in rising order.

    Each size begins where the next smaller one ends. That depends on nothing else: a design reads the same weights at
    every step, when it is judged and when it is delivered.
    """

    sizes: tuple[tuple[str, tuple[int, ...]], ...]

    @classmethod
    def of(cls, space: Space) -> "CyclicOffsets":
        """Find the sizes of a space by sampled designs; a size that none of them has begins between its neighbours."""
        found: dict[str, set[int]] = {}
        for turn in range(_SAMPLED):
            for tensor in tensors_of(space.card(space.sample(derive(0, "cyclic", turn), "gene"))).values():
                for factor in (one for axis in tensor.axes for one in axis if one.group):
                    found.setdefault(factor.group, set()).add(factor.size)
        return cls(tuple((group, tuple(sorted(sizes))) for group, sizes in sorted(found.items())))

    def __call__(self, group: str, given: int, wanted: int) -> int:
        return sum(size for size in dict(self.sizes).get(group, ()) if size < wanted) % given
