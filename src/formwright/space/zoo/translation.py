"""Published translation models: the Transformer (Vaswani et al., 2017), the Evolved Transformer (So et al., 2019).

The Evolved Transformer follows the authors' released model: three encoder cells and four decoder cells, attention
without biases, norms shared by parallel branches. As a language model it is a decoder alone, whose cells lack what
attends to an encoder. The tiny ones are of our making, for tasks that are learnt in minutes.
"""

from dataclasses import replace

from formwright.arch.card import Card
from formwright.arch.embeddings import TokenEmbedding
from formwright.arch.layers import Block, Branch, Cell, Junction, Layer, Stack
from formwright.arch.ops import Attention, Convolution, CrossAttention, GatedLinearUnit, Identity, SeparableConvolution

VOCABULARY = 32_768


def model(width: int, encoder: tuple[Layer, ...], decoder: tuple[Layer, ...], vocabulary: int = VOCABULARY) -> Card:
    """Describe a translation model with sinusoidal positions, final norms and one token table for both languages."""
    table = TokenEmbedding(vocabulary, width, positions="sinusoidal", norm=False)
    return Card(
        encoder=Stack(table, encoder, final_norm=True),
        decoder=Stack(table, decoder, causal=True, final_norm=True),
        share_embedding=True,
    )


def _attention(heads: int, width: int) -> Attention:
    return Attention(heads, width // heads, bias=False)


def _attend(heads: int, width: int) -> CrossAttention:
    return CrossAttention(heads, width // heads, bias=False)


def language_model(width: int, layers: tuple[Layer, ...], vocabulary: int = VOCABULARY) -> Card:
    """Describe a language model: a decoder alone, otherwise built like the translation model."""
    table = TokenEmbedding(vocabulary, width, positions="sinusoidal", norm=False)
    return Card(decoder=Stack(table, layers, causal=True, final_norm=True))


def layer(width: int, heads: int, inner: int | None = None) -> Block:
    """Describe a layer of the Transformer's encoder, norms before each part; `inner` is four times the width."""
    return Block(width, _attention(heads, width), (inner or 4 * width,), activation="relu", norm="pre")


def attending(below: Block) -> Block:
    """Return the decoder layer that corresponds to an encoder layer."""
    attention = below.mixer
    assert isinstance(attention, Attention)
    return replace(below, cross=_attend(attention.heads, below.width))


def transformer(width: int, heads: int) -> Card:
    below = layer(width, heads)
    return model(width, (below,) * 6, (attending(below),) * 6)


def _same(state: int, width: int) -> Branch:
    return Branch(state, Identity(), width)


def _dense(state: int, width: int, **details: object) -> Branch:
    return Branch(state, Convolution(1), width, **details)  # type: ignore[arg-type]


def _separable(state: int, kernel: int, width: int, **details: object) -> Branch:
    return Branch(state, SeparableConvolution(kernel, stacked=1), width, norm=True, **details)  # type: ignore[arg-type]


def encoder_cell(d: int, heads: int) -> Cell:
    return Cell(
        d,
        (
            Junction(Branch(0, GatedLinearUnit(), d, norm=True), _same(0, d)),
            Junction(
                _dense(1, 4 * d, norm=True, activation="relu"),
                Branch(1, Convolution(3), d // 2, norm=True, activation="relu"),
            ),
            Junction(_separable(2, 9, d // 2), _same(1, d)),
            Junction(Branch(3, _attention(heads, d), d, norm=True), _same(3, d)),
            Junction(_dense(4, 4 * d, norm=True, activation="relu")),
            Junction(_dense(5, d), _same(4, d)),
        ),
    )


def decoder_cell(d: int, heads: int) -> Cell:
    return Cell(
        d,
        (
            Junction(
                Branch(0, _attention(min(2 * heads, 16), d), d, norm=True), Branch(0, _attend(heads, d), d, norm=True)
            ),
            Junction(_same(1, d), _same(0, d)),
            Junction(_separable(2, 11, 2 * d, activation="relu"), _separable(2, 7, d // 2)),
            Junction(_separable(3, 7, d), _same(2, d)),
            Junction(Branch(4, _attention(heads, d), d, norm=True), _same(4, d)),
            Junction(Branch(5, _attend(heads, d), d, norm=True), _same(5, d)),
            Junction(_dense(6, 4 * d, norm=True, activation="swish")),
            Junction(_dense(7, d, norm=True), _same(6, d)),
        ),
    )


def writer_cell(d: int, heads: int) -> Cell:
    """Describe the published decoder cell without cross-attention, as in the authors' code."""
    return Cell(
        d,
        (
            Junction(Branch(0, _attention(min(2 * heads, 16), d), d, norm=True), _same(0, d)),
            Junction(_separable(1, 11, 2 * d, activation="relu"), _separable(1, 7, d // 2)),
            Junction(_separable(2, 7, d), _same(1, d)),
            Junction(Branch(3, _attention(heads, d), d, norm=True), _same(3, d)),
            Junction(_dense(4, 4 * d, norm=True, activation="swish")),
            Junction(_dense(5, d, norm=True), _same(4, d)),
        ),
    )


def evolved(width: int, heads: int) -> Card:
    return model(width, (encoder_cell(width, heads),) * 3, (decoder_cell(width, heads),) * 4)


TRANSFORMER_BASE = transformer(512, 8)
TRANSFORMER_BIG = transformer(1024, 16)
EVOLVED_TRANSFORMER_BASE = evolved(512, 8)
EVOLVED_TRANSFORMER_BIG = evolved(1024, 16)

_WIDTH, _HEADS, _WORDS = 64, 4, 2_000
TRANSFORMER_TINY = model(_WIDTH, (layer(_WIDTH, _HEADS),) * 2, (attending(layer(_WIDTH, _HEADS)),) * 2, _WORDS)
EVOLVED_TRANSFORMER_TINY = model(_WIDTH, (encoder_cell(_WIDTH, _HEADS),), (decoder_cell(_WIDTH, _HEADS),), _WORDS)
TRANSFORMER_WRITER_TINY = language_model(_WIDTH, (layer(_WIDTH, _HEADS),) * 2, _WORDS)
EVOLVED_TRANSFORMER_WRITER_TINY = language_model(_WIDTH, (writer_cell(_WIDTH, _HEADS),), _WORDS)
