"""AutoBERT-Zero (Gao et al., 2022): layers are attentions made of primitive operations, or convolutions.

The paper does not bound the length of an attention's computation. Here a formula has at most 12 operations as written
out (9 in the nano space), which holds standard attention (5), the published layer 12 (7) and layer 2 (9).
"""

from formwright.arch.card import Card
from formwright.arch.embeddings import TokenEmbedding
from formwright.arch.layers import Block, Stack
from formwright.arch.ops import LightweightConvolution, OpGraph
from formwright.arch.primitives import Term
from formwright.space import Case, Choice, Expressions, Fields, Record, Repeat, Space, Switch
from formwright.space.zoo.bert import VOCABULARY

KERNELS = (3, 5, 7, 9, 15, 31, 65)
_ABOUT = "attentions from primitive operations, or convolutions (AutoBERT-Zero, Gao et al. 2022)"


def autobert_zero(
    name: str, layers: int, heads: int, head_width: int, largest: int, kernels: tuple[int, ...], vocabulary: int
) -> Space:
    """Make the space: `largest` bounds the operations of an attention formula."""
    layer = Switch.of(attention=Expressions(largest), convolution=Choice(kernels))

    def build(design: Fields) -> Card:
        blocks = tuple(_block(choice, heads, head_width) for choice in design.layers)
        return Card(encoder=Stack(TokenEmbedding(vocabulary, heads * head_width, types=2), blocks))

    return Space(name, Record.of(layers=Repeat(layer, layers)), build, _ABOUT)


def _block(choice: Case, heads: int, head_width: int) -> Block:
    width = heads * head_width
    if choice.tag == "attention":
        return Block(width, OpGraph(heads, head_width, choice.value), (4 * width,))
    return Block(width, LightweightConvolution(choice.value, heads), (4 * width,))


BASE = autobert_zero("autobert-zero", 12, 12, 64, largest=12, kernels=KERNELS, vocabulary=VOCABULARY)
NANO = autobert_zero("autobert-zero-nano", 4, 4, 16, largest=9, kernels=KERNELS[:-1], vocabulary=1_000)

STANDARD_ATTENTION: Term = ("matmul", ("softmax", ("scale", ("matmul", "Q", ("transpose", "K")))), "V")


# softmax(Q softplus(K^T) / sqrt(d)) (K + Q), and softmax(Q (K / sqrt(d) + V)^T / sqrt(d)) V
SECOND_LAYER: Term = (
    "matmul",
    ("softmax", ("scale", ("matmul", "Q", ("neg", ("logsigmoid", ("neg", ("transpose", "K"))))))),
    ("add", "K", "Q"),
)
TWELFTH_LAYER: Term = (
    "matmul",
    ("softmax", ("scale", ("matmul", "Q", ("transpose", ("add", ("scale", "K"), "V"))))),
    "V",
)


def _one_layer(term: Term) -> Card:
    block = _block(Case("attention", term), 12, 64)
    return Card(encoder=Stack(TokenEmbedding(VOCABULARY, 768, types=2), (block,)))


LAYER_2 = _one_layer(SECOND_LAYER)
LAYER_12 = _one_layer(TWELFTH_LAYER)
