"""Batches of rows of similar length, so that little of a batch is padding."""

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from formwright.core.errors import IllegalInput
from formwright.tasks.encode import Encoded

_POOL = 16  # batches that are sorted together: enough to meet rows of equal length, few enough to stay random

Plan = list[NDArray[np.int64]]


@dataclass(frozen=True, eq=False)
class Batch:
    """Some rows as matrices (rows, tokens); masks are true where a token is real, `rows` says which rows they are."""

    rows: NDArray[np.int64]
    tokens: NDArray[np.int32]
    mask: NDArray[np.bool_]
    types: NDArray[np.int32]
    labels: NDArray[np.int64] | NDArray[np.float32] | None = None
    targets: NDArray[np.int32] | None = None
    targets_mask: NDArray[np.bool_] | None = None


def plan_batches(lengths: NDArray[np.int64], size: int, rng: Generator | None = None, bucketed: bool = True) -> Plan:
    """Group rows into batches of `size`, the last one smaller, and return the row numbers of each batch.

    With a generator rows and batches come in random order, without one by length. Only `bucketed` plans bring rows of
    similar length together.
    """
    if size < 1:
        raise IllegalInput(f"a batch needs at least one row, not {size}")
    order = np.arange(len(lengths)) if rng is None else rng.permutation(len(lengths))
    if bucketed:
        pool = len(order) if rng is None else _POOL * size
        pools = [order[start : start + pool] for start in range(0, len(order), max(pool, 1))]
        order = np.concatenate([rows[np.argsort(lengths[rows], kind="stable")] for rows in pools] or [order])
    batches = [order[start : start + size] for start in range(0, len(order), size)]
    return batches if rng is None else [batches[index] for index in rng.permutation(len(batches))]


def padding_share(lengths: NDArray[np.int64], plan: Plan) -> float:
    """Give the share of padding among all tokens that a plan of batches computes."""
    computed = sum(len(rows) * int(lengths[rows].max()) for rows in plan)
    return 1.0 - int(lengths.sum()) / computed if computed else 0.0


def take(encoded: Encoded, rows: NDArray[np.int64]) -> Batch:
    """Make one batch of the given rows."""
    tokens, mask = encoded.tokens.padded(rows, encoded.pad)
    targets = targets_mask = None
    if encoded.targets is not None:
        targets, targets_mask = encoded.targets.padded(rows, encoded.pad)
    labels = None if encoded.labels is None else encoded.labels[rows]
    return Batch(rows, tokens, mask, encoded.types.padded(rows)[0], labels, targets, targets_mask)
