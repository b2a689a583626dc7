"""Chains in which every layer has one operation: MAGIC (Xu et al., 2022) and Fast BERT Search, at sizes of our making.

MAGIC chooses between attention of 6 or 8 heads, convolutions of 3 or 5 tokens and a feed-forward layer; the nano space
has half as many heads. The publications give no operations for Fast BERT Search, and no number of layers for either:
these are ours.
"""

from collections.abc import Sequence

from formwright.arch.embeddings import TokenEmbedding
from formwright.space.space import Space
from formwright.space.zoo.chains import free_chain

_LAYERS, _HEAD = 6, 16
_TOKENS = TokenEmbedding(1_000, 64, types=2, length=128)
_SIZES = {"attention": (1, 2, 4), "separable": (3, 5, 7), "feed-forward": (64, 128, 256)}
PARTS = (*(f"{kind}-{size}" for kind, sizes in _SIZES.items() for size in sizes), "identity")

NANO = free_chain(
    "magic-nano",
    "chains of one-operation layers (MAGIC, Xu et al. 2022)",
    ("attention-3", "attention-4", "separable-3", "separable-5", "feed-forward"),
    _LAYERS,
    _TOKENS,
    _HEAD,
)


def fast_bert(operations: Sequence[str] = PARTS) -> Space:
    """Make the space of Fast BERT Search from a menu of operations."""
    about = "chains of BERT's parts in several sizes (Fast BERT Search)"
    return free_chain("fast-bert-nano", about, operations, _LAYERS, _TOKENS, _HEAD)


FAST_BERT_NANO = fast_bert()
