"""Short descriptions of a design and its parts, shared by all drawings, and their line breaks."""

import re
import textwrap

from formwright.arch import ops
from formwright.arch.card import Card
from formwright.arch.layers import Block, Branch, Cell, Embedding, FrameEmbedding, Layer, PatchEmbedding, TokenEmbedding
from formwright.report.formula import formula
from formwright.report.layer_runs import Projection

_Headed = ops.Attention | ops.CrossAttention | ops.RelativeAttention | ops.DynamicConvolution | ops.OpGraph
_SCORES = {"sdp": "scaled dot product", "wma": "weighted multiplicative"}
_TRANSFORMS = {"dft": "Fourier transform", "dct": "cosine transform"}
_GLUE = "\N{NO-BREAK SPACE}"
_AROUND = re.compile(r" ([+/-]) ")  # the signs of a formula
_INSIDE = re.compile(r"(?<=[(·])")  # where a formula that is too long may be broken
_TOGETHER = re.compile(r" (?=x \d)|(?<=\d) (?=heads?\b)|(?<=\bx) (?=\d)|(?<=\bto) (?=\d)|(?<=\bkernel) (?=\d)")


def describe(operation: ops.Operation) -> str:
    """Describe an operation in one short phrase."""
    match operation:
        case ops.Attention():
            words = [_heads(operation), _SCORES[operation.score], _relative(operation.relative)]
            return _listed(*words, "" if operation.bias else "no bias")
        case ops.CrossAttention():
            source = _plural(operation.layers, "encoder layer") if operation.layers > 1 else "encoder layer"
            words = [f"cross-attention to the last {source}", _heads(operation)]
            return _listed(*words, "" if operation.bias else "no bias")
        case ops.Transform():
            relative = f" + relative attention, {_heads(operation.relative)}" if operation.relative else ""
            return _TRANSFORMS[operation.transform] + relative
        case ops.DynamicConvolution():
            return _listed(_kernel("dynamic", operation.kernel), _heads(operation), _relative(operation.relative))
        case ops.SeparableConvolution():
            times = {1: "", 2: "twice"}.get(operation.stacked, f"{operation.stacked} times")
            return _listed(_kernel("separable", operation.kernel), times)
        case ops.LightweightConvolution():
            words = [_kernel("lightweight", operation.kernel), _plural(operation.heads, "head")]
            return _listed(*words, "gated" if operation.gated else "")
        case ops.Convolution():
            return "dense" if operation.kernel == 1 else f"convolution, kernel {operation.kernel}"
        case ops.OpGraph():
            return f"{_heads(operation)}, {formula(operation.term)}"
        case ops.GatedLinearUnit():
            return "gated linear unit"
        case ops.Identity():
            return "identity"


def heads_of(operation: ops.Operation) -> int:
    """Return the number of heads of an operation; 1 if it has none."""
    match operation:
        case ops.Transform():
            return operation.relative.heads if operation.relative else 1
        case (
            ops.Attention()
            | ops.CrossAttention()
            | ops.DynamicConvolution()
            | ops.LightweightConvolution()
            | ops.OpGraph()
        ):
            return operation.heads
    return 1


def describe_feed_forward(block: Block) -> str:
    """Describe the feed-forward stack of a block; empty if it has none."""
    if not block.feed_forward:
        return ""
    return f"feed-forward {', '.join(map(str, block.feed_forward))}, {block.activation}"


def brief(layer: Layer) -> str:
    """Summarise a layer in one phrase, the most distinctive facts first."""
    if isinstance(layer, Cell):
        return f"cell of {_plural(len(layer.junctions), 'junction')}"
    cross = "cross-attention" if layer.cross else ""
    return _listed(*map(str, layer.feed_forward), cross, describe(layer.mixer))


def describe_branch(branch: Branch) -> str:
    """Describe which state a branch reads and what it does, in order of computation."""
    width = "" if isinstance(branch.operation, ops.Identity) else f"to {branch.width}"
    kind = "self-attention" if isinstance(branch.operation, ops.Attention) else ""
    words = _listed("norm" if branch.norm else "", kind, describe(branch.operation), width, branch.activation or "")
    return f"[{branch.input}] {words}"


def describe_embedding(embedding: Embedding, *, shared: bool = False) -> tuple[str, str]:
    """Describe the embedding and its positions in two lines; a `shared` table belongs to the encoder."""
    match embedding:
        case TokenEmbedding():
            table = f"{embedding.vocabulary:,} tokens x {embedding.table_width}"
            source = "shared with the encoder" if shared else ""
            types = _plural(embedding.types, "token type") if embedding.types else ""
            return _listed(table, source), _listed(_positions(embedding, embedding.length), types)
        case PatchEmbedding():
            image, patch = embedding.image, embedding.patch
            line = f"{image} x {image} image, {_plural(embedding.channels, 'channel')}, patches of {patch} x {patch}"
            trained = ("", " with a class token", " with a class and a distillation token")[embedding.class_tokens]
            return line, _listed(f"{_plural(embedding.tokens, 'token')}{trained}", _positions(embedding, None))
        case FrameEmbedding():
            return f"frames of {embedding.features} features", _positions(embedding, embedding.length)


def describe_head(card: Card) -> tuple[str, ...]:
    """Describe the pooler and the classifier of a design, if any."""
    pooler = f"pooler, {card.output_width} to {card.output_width}" if card.pooler else ""
    classes = f"classifier, {_plural(card.classes, 'class', 'classes')}" if card.classes else ""
    return tuple(words for words in (pooler, classes) if words)


def headline(card: Card) -> str:
    """Summarise a design in one line: family, depth and widths."""
    depths = [len(stack.layers) for stack in card.stacks]
    layers = " + ".join(map(str, depths)) + (" layer" if depths == [1] else " layers")
    widths = {layer.width for stack in card.stacks for layer in stack.layers}
    span = " to ".join(str(width) for width in sorted({min(widths), max(widths)}))
    idle = f"{card.idle:,} idle parameters" if card.idle else ""
    causal = "causal" if card.encoder is not None and card.encoder.causal else ""
    return _listed(card.family, causal, layers, f"{span} wide", idle)


def describe_projection(funnel: Projection) -> str:
    return f"projection {funnel.before} → {funnel.after}"


def describe_between(funnel: Projection) -> str:
    return f"{describe_projection(funnel)} from each to the next"


def heading(first: int, last: int) -> str:
    """Name the layers from `first` to `last`, counted from 1."""
    return f"Layer {first}" if first == last else f"Layers {first}\N{EN DASH}{last}"


def describe_layer(layer: Layer) -> str:
    """Describe a layer as a whole: its width, whether it is a cell, and the order of its norms."""
    if isinstance(layer, Cell):
        return f"{_width(layer)}, cell"
    return _listed(_width(layer), "norm first" if layer.norm == "pre" else "")


def _width(layer: Layer) -> str:
    return f"{layer.width} wide" if layer.width == layer.output_width else f"{layer.width} to {layer.output_width} wide"


def _positions(embedding: Embedding, length: int | None) -> str:
    if embedding.positions == "none":
        return "no positions"
    return f"{embedding.positions} positions" + (f" up to {length}" if length is not None else "")


def _heads(operation: _Headed) -> str:
    return f"{_plural(operation.heads, 'head')} x {operation.head_width}"


def _kernel(name: str, kernel: int) -> str:
    return f"{name} convolution, kernel {kernel}"


def _relative(relative: ops.Relative | None) -> str:
    if relative is None:
        return ""
    axes = " in 2 axes" if relative.axes == 2 else ""
    return f"relative{axes}{' for keys and values' if relative.values else ''}"


def _plural(count: int, one: str, many: str = "") -> str:
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def _listed(*words: str) -> str:
    return ", ".join(word for word in words if word)


def wrapped(words: str, letters: int, indent: int = 0, most: int | None = None) -> list[str]:
    """Break words into lines of `letters`, later ones indented; at most `most` lines, then an ellipsis."""
    glued = _TOGETHER.sub(_GLUE, words)
    whole = _with_operands(_AROUND.sub(rf"{_GLUE}\1{_GLUE}", glued))
    wrapper = _Wrapper(
        letters, subsequent_indent=" " * indent, break_on_hyphens=False, max_lines=most, placeholder=" …"
    )
    lines = wrapper.wrap(whole if max(map(len, whole.split(" "))) <= letters - indent else glued)
    return [line.replace(_GLUE, " ") for line in lines]


def _with_operands(words: str) -> str:
    """Keep text in brackets together, such as the two operands of a distance."""
    depth, letters = 0, []
    for letter in words:
        depth += (letter == "(") - (letter == ")")
        letters.append(_GLUE if letter == " " and depth > 0 else letter)
    return "".join(letters)


class _Wrapper(textwrap.TextWrapper):
    def _split(self, text: str) -> list[str]:
        """Break chunks that are too long after a bracket or a product rather than anywhere."""
        room = self.width - len(self.subsequent_indent)
        chunks = super()._split(text)
        return [part for chunk in chunks for part in (_INSIDE.split(chunk) if len(chunk) > room else [chunk]) if part]


def shortened(words: str, letters: int) -> str:
    """Cut words to `letters`, marking the cut with an ellipsis."""
    return words if len(words) <= letters else (words[: letters - 1] + "…" if letters else "")
