"""Every operation as it may stand in a model, and small models made of them."""

from formwright.arch import ops
from formwright.arch.card import Card
from formwright.arch.embeddings import FrameEmbedding, TokenEmbedding
from formwright.arch.layers import Block, Branch, Cell, Junction, Layer, Stack
from formwright.space.zoo.autobert_zero import SECOND_LAYER, STANDARD_ATTENTION, TWELFTH_LAYER

WIDTH = 16
_TURNED = ("matmul", "P", ("cosine", ("transpose", "Q"), ("transpose", "K")))
_APART = ("matmul", "Q", ("scale", ("euclidean", ("transpose", "Q"), ("transpose", "V"))))
_NEAR = ("matmul", ("softmax", ("neg", ("euclidean", "Q", "Q"))), ("softsign", "V"))
_OVER_TOKENS = ("transpose", ("softmax", ("transpose", "V")))
MIXERS: dict[str, ops.Mixer] = {
    "sdp": ops.Attention(2, 8),
    "wma": ops.Attention(3, 4, "wma"),
    "sdp, relative": ops.Attention(2, 8, relative=ops.Relative(9)),
    "wma, relative values": ops.Attention(2, 8, "wma", ops.Relative(8, values=True), bias=False),
    "dft": ops.Transform("dft"),
    "dct": ops.Transform("dct"),
    "dft, relative": ops.Transform("dft", ops.RelativeAttention(2, 8, 9)),
    "dct, relative": ops.Transform("dct", ops.RelativeAttention(4, 4, 5)),
    "dynamic 9": ops.DynamicConvolution(9, 2, 8),
    "dynamic 4, relative": ops.DynamicConvolution(4, 2, 4, ops.Relative(9)),
    "separable 3": ops.SeparableConvolution(3),
    "separable 6": ops.SeparableConvolution(6, stacked=3),
    "lightweight 5": ops.LightweightConvolution(5, 4),
    "lightweight 4, bare": ops.LightweightConvolution(4, 2, gated=False),
    "standard graph": ops.OpGraph(2, 8, STANDARD_ATTENTION),
    "second layer": ops.OpGraph(2, 8, SECOND_LAYER),
    "twelfth layer": ops.OpGraph(2, 8, TWELFTH_LAYER),
    "cosine over tokens": ops.OpGraph(2, 8, _TURNED),
    "distance over tokens": ops.OpGraph(2, 8, _APART),
    "distance between tokens": ops.OpGraph(2, 8, _NEAR),
    "softmax over tokens": ops.OpGraph(2, 8, _OVER_TOKENS),
    "identity": ops.Identity(),
}
CAUSAL = {name: mixer for name, mixer in MIXERS.items() if mixer.CAUSAL}
BRANCHES: dict[str, ops.BranchOperation] = {
    **{name: mixer for name, mixer in CAUSAL.items() if not isinstance(mixer, ops.DynamicConvolution)},
    "convolution 1": ops.Convolution(),
    "convolution 3": ops.Convolution(3),
    "convolution 4": ops.Convolution(4),
    "gated linear unit": ops.GatedLinearUnit(),
}
CROSSES = {"one layer": ops.CrossAttention(2, 8), "two layers": ops.CrossAttention(3, 4, layers=2, bias=False)}


def layers_of(kernel: int) -> list[Layer]:
    """Stand every convolution of one size in blocks and cells."""
    separable, light = ops.SeparableConvolution(kernel), ops.LightweightConvolution(kernel, 4)
    bare = ops.LightweightConvolution(kernel, 2, gated=False)
    dynamic, relative = ops.DynamicConvolution(kernel, 2, 4), ops.DynamicConvolution(kernel, 2, 4, ops.Relative(5))
    mixers: list[ops.Mixer] = [separable, light, bare, dynamic, relative]
    blocks = [block(mixer, norm) for mixer in mixers for norm in ("pre", "post")]
    return [*blocks, *(cell(operation) for operation in (separable, light, bare, ops.Convolution(kernel)))]


def cell(operation: ops.BranchOperation) -> Cell:
    """Stand an operation on both sides of junctions of all kinds, with shared norms and activations."""
    free = not isinstance(operation, ops.Identity) and getattr(operation, "gated", True)
    wide = 24 if free else WIDTH
    left = Branch(0, operation, wide, norm=True, activation="relu")
    return Cell(
        WIDTH,
        (
            Junction(left, Branch(0, ops.GatedLinearUnit(), WIDTH, norm=True)),
            Junction(Branch(1, ops.Identity(), wide), Branch(0, operation, WIDTH, activation="swish"), "concatenate"),
            Junction(Branch(2, ops.Convolution(), WIDTH, norm=True), Branch(0, ops.Identity(), WIDTH)),
            Junction(Branch(3, operation, WIDTH), Branch(1, ops.Convolution(), 8), "multiply"),
        ),
    )


def block(mixer: ops.Mixer, norm: str, cross: ops.CrossAttention | None = None) -> Block:
    """Stand a mixer in a block."""
    return Block(WIDTH, mixer, (24, 20), "gelu", norm, cross)  # type: ignore[arg-type]


def stack(layers: tuple[Layer, ...], positions: str = "learned", *, causal: bool = False) -> Stack:
    """Put layers above a token table; relative positions of the layers replace those of the table."""
    found = [operation for layer in layers for _, operation in layer.operations]
    kind = "relative" if any(one.relative_axes for one in found) else positions
    table = TokenEmbedding(50, WIDTH, None, kind, length=64, types=2)  # type: ignore[arg-type]
    return Stack(table, layers, causal=causal, final_norm=positions == "sinusoidal")


def encoders() -> dict[str, Card]:
    """Give encoders of two equal layers, for each mixer in blocks and each operation in cells."""
    cards = {}
    for norm, positions in (("pre", "sinusoidal"), ("post", "learned")):
        for name, mixer in MIXERS.items():
            cards[f"{name}, {norm}"] = Card(stack((block(mixer, norm),) * 2, positions), pooler=True)
    for name, operation in BRANCHES.items():
        cards[f"{name}, cell"] = Card(stack((cell(operation),) * 2))
    frames = Stack(FrameEmbedding(10, WIDTH, length=64), (block(ops.Transform("dft"), "post"),) * 2)
    return {**cards, "frames": Card(frames)}


def decoders() -> dict[str, Card]:
    """Give causal models of two equal layers, for each mixer that may stand in them."""
    cards = {}
    for norm, positions in (("pre", "sinusoidal"), ("post", "learned")):
        for name, mixer in CAUSAL.items():
            cards[f"{name}, {norm}"] = Card(decoder=stack((block(mixer, norm),) * 2, positions, causal=True))
    for name, operation in BRANCHES.items():
        cards[f"{name}, cell"] = Card(decoder=stack((cell(operation),) * 2, causal=True))
    cards["causal encoder"] = Card(stack((block(MIXERS["sdp"], "post"),) * 2, causal=True))
    return cards


def translators() -> dict[str, Card]:
    """Give encoder-decoders whose decoders attend to one or two encoder layers, in blocks and in cells."""
    cards = {}
    for (name, cross), norm in zip(CROSSES.items(), ("pre", "post"), strict=True):
        for below in ("sdp, relative", "dft", "dynamic 4, relative", "second layer"):
            source = stack((block(MIXERS[below], norm),) * 2)
            target = stack((block(MIXERS["sdp"], norm, cross),) * 2, causal=True)
            cards[f"{name}, {below}"] = Card(source, target, share_embedding=True)
        cards[f"{name}, cell"] = Card(source, stack((cell(cross),) * 2, causal=True))
    return cards
