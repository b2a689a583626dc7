"""Designs that the tests of the drawings share."""

from itertools import chain

from hypothesis import strategies as st

from formwright.arch import ops
from formwright.arch.card import Card
from formwright.arch.embeddings import FrameEmbedding, PatchEmbedding, TokenEmbedding
from formwright.arch.layers import Block, Branch, Cell, Junction, Layer, Stack
from formwright.arch.primitives import Term

_SOFTPLUS_KEY: Term = ("neg", ("logsigmoid", ("neg", "K")))
_SOFTPLUS_SCORE: Term = ("softmax", ("matmul", ("scale", "Q"), ("transpose", _SOFTPLUS_KEY)))
MIXERS: dict[str, ops.Mixer] = {
    "sdp": ops.Attention(4, 64),
    "wma": ops.Attention(2, 128, "wma", ops.Relative(1027, values=True), bias=False),
    "dft": ops.Transform("dft"),
    "dct": ops.Transform("dct", ops.RelativeAttention(4, 64, 1027)),
    "dynamic": ops.DynamicConvolution(9, 4, 32, ops.Relative(1027)),
    "separable": ops.SeparableConvolution(7, 3),
    "lightweight": ops.LightweightConvolution(15, 8),
    "op-graph": ops.OpGraph(4, 64, ("matmul", _SOFTPLUS_SCORE, ("add", "K", "Q"))),
    "identity": ops.Identity(),
}


def text_encoder(layers: tuple[Layer, ...], *, pooler: bool = False) -> Card:
    """Put layers above a token table with learned positions."""
    return Card(encoder=Stack(TokenEmbedding(1000, layers[0].width), layers), pooler=pooler)


def mixer_card(mixer: ops.Mixer) -> Card:
    """Build one layer around a mixer."""
    return text_encoder((Block(256, mixer, (512, 1024)),))


def bert_base() -> Card:
    block = Block(768, ops.Attention(12, 64), (3072,))
    return Card(encoder=Stack(TokenEmbedding(30522, 768, types=2), (block,) * 12), pooler=True)


def flexibert_mini() -> Card:
    wide = Block(256, ops.Attention(2, 128, "sdp", ops.Relative(1027)), (512, 512, 512))
    narrow = Block(128, ops.Transform("dct", ops.RelativeAttention(4, 32, 1027)), (1024,))
    embedding = TokenEmbedding(50265, 256, positions="relative", length=514, types=1)
    return Card(encoder=Stack(embedding, (wide, wide, narrow, narrow)), pooler=True)


def vision() -> Card:
    blocks = (Block(192, ops.Attention(3, 64, relative=ops.Relative(14, 2, True)), (672,), norm="pre"),) * 5
    more = (Block(192, ops.Attention(4, 64, relative=ops.Relative(14, 2, True)), (768,), norm="pre"),) * 8
    return Card(encoder=Stack(PatchEmbedding(224, 16, 192), blocks + more, final_norm=True), classes=1000)


def speech() -> Card:
    layers = (Block(256, ops.LightweightConvolution(7, 4), (1024,), "swish", "pre"), Block(256, ops.Attention(4, 64)))
    return Card(encoder=Stack(FrameEmbedding(80, 256, "sinusoidal"), layers * 6))


def decoder() -> Card:
    block = Block(512, ops.Attention(8, 64), (2048,), norm="pre")
    return Card(decoder=Stack(TokenEmbedding(50257, 512, factorised=128), (block,) * 6, causal=True, final_norm=True))


def encoder_decoder() -> Card:
    """Build a design whose decoder layers read one, two and three encoder layers."""
    below = tuple(Block(512, ops.Attention(8, 64), (width,), "relu") for width in (3072, 3072, 2048, 2048, 1024, 3072))
    above = tuple(
        Block(640, ops.Attention(heads, 64), (width,), "relu", cross=ops.CrossAttention(heads, 64, layers))
        for heads, width, layers in ((8, 3072, 1), (8, 3072, 1), (4, 2048, 3), (8, 1024, 2))
    )
    tables = TokenEmbedding(32768, 512, positions="sinusoidal"), TokenEmbedding(32768, 640, positions="sinusoidal")
    return Card(encoder=Stack(tables[0], below), decoder=Stack(tables[1], above, causal=True))


def evolved() -> Card:
    """Build an encoder-decoder of cells after the Evolved Transformer."""
    table = TokenEmbedding(32768, 512, positions="sinusoidal")
    encoder = Stack(table, (_encoder_cell(512),) * 3, final_norm=True)
    decoder = Stack(table, (_decoder_cell(512),) * 4, causal=True, final_norm=True)
    return Card(encoder=encoder, decoder=decoder, share_embedding=True)


def _encoder_cell(width: int) -> Cell:
    junctions = (
        Junction(Branch(0, ops.GatedLinearUnit(), width, norm=True), Branch(0, ops.Identity(), width)),
        Junction(
            Branch(1, ops.Convolution(1), 4 * width, norm=True, activation="relu"),
            Branch(1, ops.Convolution(3), width // 2, norm=True, activation="relu"),
        ),
        Junction(Branch(2, ops.SeparableConvolution(9, 1), width // 2, norm=True), Branch(1, ops.Identity(), width)),
        Junction(Branch(3, ops.Attention(8, 64), width, norm=True), Branch(3, ops.Identity(), width)),
        Junction(Branch(4, ops.Convolution(1), 4 * width, norm=True, activation="relu")),
        Junction(Branch(5, ops.Convolution(1), width), Branch(4, ops.Identity(), width)),
    )
    return Cell(width, junctions)


def _decoder_cell(width: int) -> Cell:
    junctions = (
        Junction(
            Branch(0, ops.Attention(16, 32), width, norm=True), Branch(0, ops.CrossAttention(8, 64), width, norm=True)
        ),
        Junction(Branch(1, ops.Identity(), width), Branch(0, ops.Identity(), width)),
        Junction(
            Branch(2, ops.SeparableConvolution(11, 1), 2 * width, norm=True, activation="relu"),
            Branch(2, ops.SeparableConvolution(7, 1), width // 2, norm=True),
        ),
        Junction(Branch(3, ops.SeparableConvolution(7, 1), width, norm=True), Branch(2, ops.Identity(), width)),
        Junction(Branch(4, ops.Attention(8, 64), width, norm=True), Branch(4, ops.Identity(), width)),
        Junction(Branch(5, ops.CrossAttention(8, 64), width, norm=True), Branch(5, ops.Identity(), width)),
        Junction(Branch(6, ops.Convolution(1), 4 * width, norm=True, activation="swish")),
        Junction(Branch(7, ops.Convolution(1), width, norm=True), Branch(6, ops.Identity(), width)),
    )
    return Cell(width, junctions)


def deep(layers: int = 96) -> Card:
    """Build a deep design in four stages of three kinds of layer, each kind several times."""
    attention, wide = (
        Block(512, ops.Attention(8, 64), (2048,)),
        Block(768, ops.DynamicConvolution(9, 6, 64), (1024, 1024)),
    )
    fourier, last = Block(512, ops.Transform("dft"), (2048,)), Block(384, ops.SeparableConvolution(5), (1536,))
    stages = (attention,) * (layers // 4) + (wide, fourier) * (layers // 8)
    return text_encoder(stages + (last,) * (layers - len(stages)))


def uneven(layers: int = 96) -> Card:
    """Build a design in which no layer is like its neighbours and no pattern repeats."""
    mixers = list(MIXERS.values())
    blocks = tuple(
        Block(64 * (4 + index * index % 11), mixer, (256 + 32 * index,))
        for index, mixer in enumerate((mixers[0], mixers[2], mixers[5], mixers[7]) * (layers // 4))
    )
    return text_encoder(blocks)


CARDS = {
    "bert-base": bert_base(),
    "flexibert-mini": flexibert_mini(),
    "vision": vision(),
    "speech": speech(),
    "decoder": decoder(),
    "encoder-decoder": encoder_decoder(),
    "evolved": evolved(),
    "deep": deep(),
    "uneven": uneven(),
    **{f"mixer-{name}": mixer_card(mixer) for name, mixer in MIXERS.items()},
}


@st.composite
def blocks(draw: st.DrawFn) -> Block:
    """Draw an ordinary layer of any shape."""
    heads, head_width = draw(st.integers(1, 40)), draw(st.sampled_from((8, 32, 64)))
    mixers: list[ops.Mixer] = [
        ops.Attention(heads, head_width),
        ops.Transform("dft"),
        ops.DynamicConvolution(9, heads, head_width),
        ops.SeparableConvolution(5, draw(st.integers(1, 3))),
        ops.LightweightConvolution(7, draw(st.sampled_from((1, 2, 4, 8)))),
        MIXERS["op-graph"],
        ops.Identity(),
    ]
    mixer, norm = draw(st.sampled_from(mixers)), draw(st.sampled_from(("pre", "post")))
    least = 1 if isinstance(mixer, ops.Identity) else 0  # a layer without any part may not change the width
    feed_forward = draw(st.lists(st.sampled_from((64, 512, 3072, 8192)), min_size=least, max_size=4))
    return Block(8 * draw(st.integers(2, 256)), mixer, tuple(feed_forward), norm=norm)


@st.composite
def cells(draw: st.DrawFn) -> Cell:
    """Draw a cell in which every junction reads the one before it, and anything else beside it."""
    junctions = []
    for index in range(draw(st.integers(1, 7))):
        operation = draw(
            st.sampled_from((ops.Convolution(1), ops.Convolution(3), ops.SeparableConvolution(9), ops.Attention(8, 64)))
        )
        left = Branch(index, operation, draw(st.sampled_from((32, 256, 1024))), norm=True)
        source, width = draw(st.integers(0, index)), draw(st.sampled_from((32, 512)))
        right = Branch(source, ops.GatedLinearUnit(), width, activation="swish")
        combine = draw(st.sampled_from(("add", "concatenate", "multiply")))
        junctions.append(Junction(left, draw(st.sampled_from((right, None))), combine))
    return Cell(draw(st.sampled_from((64, 512))), tuple(junctions))


def any_cards() -> st.SearchStrategy[Card]:
    """Draw text encoders of blocks and cells of all kinds and widths, some of them repeated."""
    runs = st.tuples(blocks() | cells(), st.integers(1, 3)).map(lambda run: (run[0],) * run[1])
    return st.lists(runs, min_size=1, max_size=30).map(lambda runs: text_encoder(tuple(chain(*runs))))
