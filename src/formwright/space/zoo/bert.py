"""BERT in its six published sizes (Devlin et al., 2019; Turc et al., 2019): the hand-made designs to beat.

The elastic space of BERT-base is an example of ours.
"""

from formwright.arch.card import Card
from formwright.arch.embeddings import TokenEmbedding
from formwright.arch.layers import Block, Stack
from formwright.arch.ops import Attention
from formwright.space.elastic import elastic

VOCABULARY = 30_522
HEAD_WIDTH = 64


def bert(layers: int, width: int) -> Card:
    """Describe a BERT: heads of width 64, feed-forward layers four times as wide as the model, and a pooler."""
    block = Block(width, Attention(width // HEAD_WIDTH, HEAD_WIDTH), (4 * width,))
    return Card(encoder=Stack(TokenEmbedding(VOCABULARY, width, types=2), (block,) * layers), pooler=True)


TINY = bert(2, 128)
MINI = bert(4, 256)
SMALL = bert(4, 512)
MEDIUM = bert(8, 512)
BASE = bert(12, 768)
LARGE = bert(24, 1024)

ELASTIC = elastic(BASE, heads=(4, 6, 8, 10, 12), feed_forward=(768, 1344, 1920, 2496, 3072))
