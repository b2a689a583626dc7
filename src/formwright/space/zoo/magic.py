"""MAGIC (Xu et al., 2022): chains in which every layer has one operation, at a small size of our choice.

MAGIC chooses between attention of 6 or 8 heads, convolutions of 3 or 5 tokens and a feed-forward layer; the nano space
has half as many heads. The publication gives no number of layers: it is ours.
"""

from formwright.arch.embeddings import TokenEmbedding
from formwright.space.zoo.chains import free_chain

NANO = free_chain(
    "magic-nano",
    "chains of one-operation layers (MAGIC, Xu et al. 2022)",
    ("attention-3", "attention-4", "separable-3", "separable-5", "feed-forward"),
    layers=6,
    tokens=TokenEmbedding(1_000, 64, types=2, length=128),
    head=16,
)
