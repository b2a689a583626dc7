"""Batches of text without labels, for models that learn from another model alone."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from formwright.tasks import batches
from formwright.tasks.encode import Encoded
from formwright.train.batch import Batch
from formwright.train.streams import Shuffled


@dataclass(frozen=True)
class Plain:
    """Texts that are only read."""

    encoded: Encoded
    order: Shuffled

    def batch(self, step: int) -> Batch:
        """Give the batch of a step."""
        return plain(self.encoded, self.order.rows(step))


def plain(encoded: Encoded, rows: NDArray[np.int64]) -> Batch:
    """Make a batch of some rows, without a mask where there is no padding; its labels say nothing."""
    taken = batches.take(encoded, rows)
    return Batch(
        inputs=torch.from_numpy(taken.tokens.astype(np.int64)),
        labels=torch.zeros(len(rows), dtype=torch.long),
        mask=None if taken.mask.all() else torch.from_numpy(taken.mask),
        types=torch.from_numpy(taken.types.astype(np.int64)),
    )
