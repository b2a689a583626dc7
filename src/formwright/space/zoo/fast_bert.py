"""Fast BERT Search: chains of BERT's parts in several sizes, or of those on a menu.

The publication gives no operations, no sizes and no number of layers: these are ours.
"""

from collections.abc import Sequence

from formwright.arch.embeddings import TokenEmbedding
from formwright.space.space import Space
from formwright.space.zoo.chains import free_chain

_SIZES = {"attention": (1, 2, 4), "separable": (3, 5, 7), "feed-forward": (64, 128, 256)}
PARTS = (*(f"{kind}-{size}" for kind, sizes in _SIZES.items() for size in sizes), "identity")


def fast_bert(operations: Sequence[str] = PARTS) -> Space:
    """Make the space of Fast BERT Search from a menu of operations."""
    about = "chains of BERT's parts in several sizes (Fast BERT Search)"
    tokens = TokenEmbedding(1_000, 64, types=2, length=128)
    return free_chain("fast-bert-nano", about, operations, layers=6, tokens=tokens, head=16)


NANO = fast_bert()
