"""NAS-BERT (Xu et al., 2021): a chain of single-operation layers, in blocks of one width.

The widths, operations and the division into four blocks of six layers are Table 7's and the text's. The width of the
embedding is chosen here from the values that occur among the published models.
"""

from functools import cache

from formwright.arch.card import Card
from formwright.arch.layers import Block, Stack, TokenEmbedding
from formwright.arch.ops import Attention, Identity, SeparableConvolution
from formwright.space.choice import Choice
from formwright.space.record import Record
from formwright.space.repeat import Repeat
from formwright.space.space import Space
from formwright.space.value import Fields
from formwright.space.zoo.bert import VOCABULARY

WIDTHS = (128, 192, 256, 384, 512)
OPERATIONS = ("attention", "feed-forward", "separable-3", "separable-5", "separable-7", "identity")
BLOCKS, LAYERS = 4, 6

BLOCK = Record.of(hidden=Choice(WIDTHS), layers=Repeat(Choice(OPERATIONS), LAYERS))


@cache
def candidate(operation: str, width: int) -> Block:
    """Describe the layer that is one operation at one width."""
    if operation == "attention":
        return Block(width, Attention(width // 64, 64))
    if operation == "feed-forward":
        return Block(width, Identity(), (4 * width,))
    if operation == "identity":
        return Block(width, Identity())
    return Block(width, SeparableConvolution(int(operation.removeprefix("separable-"))))


def candidates() -> tuple[tuple[str, int | None], ...]:
    """List what a layer may be: every operation at every width, and identity, which has no width of its own."""
    sized = [(operation, width) for width in WIDTHS for operation in OPERATIONS if operation != "identity"]
    return (*sized, ("identity", None))


def _card(design: Fields) -> Card:
    choices = [(operation, block.hidden) for block in design.blocks for operation in block.layers]
    # identity has no width of its own: it takes that of the layer below, at the very start that of the first real layer
    width = below = next((hidden for operation, hidden in choices if operation != "identity"), choices[0][1])
    layers = []
    for operation, hidden in choices:
        below = below if operation == "identity" else hidden
        layers.append(candidate(operation, below))
    factorised = None if design.embedding == width else design.embedding
    return Card(encoder=Stack(TokenEmbedding(VOCABULARY, width, factorised=factorised, types=2), tuple(layers)))


NAS_BERT = Space(
    "nas-bert",
    Record.of(embedding=Choice((64, 128, 256, 384, 512)), blocks=Repeat(BLOCK, BLOCKS)),
    _card,
    "chains of one-operation layers in blocks of one width (NAS-BERT, Xu et al. 2021)",
)
