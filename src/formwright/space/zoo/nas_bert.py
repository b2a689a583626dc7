"""NAS-BERT (Xu et al., 2021): a chain of single-operation layers, in blocks of one width.

The widths, operations and the division into four blocks of six layers are Table 7's and the text's. The width of the
embedding is chosen here from the values that occur among the published models. A menu of another size makes the same
space for a smaller teacher.
"""

from dataclasses import replace

from formwright.arch.card import Card
from formwright.arch.embeddings import TokenEmbedding
from formwright.arch.layers import Stack
from formwright.space import Choice, Fields, Record, Repeat, Space
from formwright.space.zoo.bert import VOCABULARY
from formwright.space.zoo.chains import HEAD, Menu, candidate

WIDTHS = (128, 192, 256, 384, 512)
BLOCKS, LAYERS = 4, 6

PUBLISHED = Menu(WIDTHS, HEAD, BLOCKS, LAYERS, (64, 128, 256, 384, 512), TokenEmbedding(VOCABULARY, 512, types=2))
BLOCK = PUBLISHED.block


def nas_bert(name: str, menu: Menu) -> Space:
    root = Record.of(embedding=Choice(menu.embeddings), blocks=Repeat(menu.block, menu.blocks))
    about = "chains of one-operation layers in blocks of one width (NAS-BERT, Xu et al. 2021)"
    return Space(name, root, lambda design: _card(design, menu), about)


def _card(design: Fields, menu: Menu) -> Card:
    choices = [(operation, block.hidden) for block in design.blocks for operation in block.layers]
    # identity has no width of its own: it takes that of the layer below, at the very start that of the first real layer
    width = below = next((hidden for operation, hidden in choices if operation != "identity"), choices[0][1])
    layers = []
    for operation, hidden in choices:
        below = below if operation == "identity" else hidden
        layers.append(candidate(operation, below, menu.head))
    factorised = None if design.embedding == width else design.embedding
    return Card(encoder=Stack(replace(menu.tokens, width=width, factorised=factorised), tuple(layers)))


NAS_BERT = nas_bert("nas-bert", PUBLISHED)
