"""Short descriptions of a design and its parts, shared by all drawings, and their line breaks."""

import re
import textwrap

from formwright.arch.card import Card
from formwright.arch.layers import Block, Branch, Cell, Layer
from formwright.arch.operations.base import listed, plural
from formwright.arch.ops import Identity
from formwright.report.layer_runs import Projection

_GLUE = "\N{NO-BREAK SPACE}"
_AROUND = re.compile(r" ([+/-]) ")  # the signs of a formula
_INSIDE = re.compile(r"(?<=[(·])")  # where a formula that is too long may be broken
_TOGETHER = re.compile(r" (?=x \d)|(?<=\d) (?=heads?\b)|(?<=\bx) (?=\d)|(?<=\bto) (?=\d)|(?<=\bkernel) (?=\d)")


def describe_feed_forward(block: Block) -> str:
    """Describe the feed-forward stack of a block; empty if it has none."""
    if not block.feed_forward:
        return ""
    return f"feed-forward {', '.join(map(str, block.feed_forward))}, {block.activation}"


def brief(layer: Layer) -> str:
    """Summarise a layer in one phrase, the most distinctive facts first."""
    if isinstance(layer, Cell):
        return f"cell of {plural(len(layer.junctions), 'junction')}"
    cross = "cross-attention" if layer.cross else ""
    return listed(*map(str, layer.feed_forward), cross, layer.mixer.describe())


def describe_branch(branch: Branch) -> str:
    """Describe which state a branch reads and what it does, in order of computation."""
    width = "" if isinstance(branch.operation, Identity) else f"to {branch.width}"
    phrase = branch.operation.describe_alone()
    words = listed("norm" if branch.norm else "", phrase, width, branch.activation or "")
    return f"[{branch.input}] {words}"


def describe_head(card: Card) -> tuple[str, ...]:
    """Describe the pooler and the classifier of a design, if any."""
    pooler = f"pooler, {card.output_width} to {card.output_width}" if card.pooler else ""
    classes = f"classifier, {plural(card.classes, 'class', 'classes')}" if card.classes else ""
    return tuple(words for words in (pooler, classes) if words)


def headline(card: Card) -> str:
    """Summarise a design in one line: family, depth and widths."""
    depths = [len(stack.layers) for stack in card.stacks]
    layers = " + ".join(map(str, depths)) + (" layer" if depths == [1] else " layers")
    widths = {layer.width for stack in card.stacks for layer in stack.layers}
    span = " to ".join(str(width) for width in sorted({min(widths), max(widths)}))
    idle = f"{card.idle:,} idle parameters" if card.idle else ""
    causal = "causal" if card.encoder is not None and card.encoder.causal else ""
    joined = "projections between all layers" if any(stack.joints == "always" for stack in card.stacks) else ""
    return listed(card.family, causal, layers, f"{span} wide", joined, idle)


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
    return listed(_width(layer), "norm first" if layer.norm == "pre" else "")


def _width(layer: Layer) -> str:
    return f"{layer.width} wide" if layer.width == layer.output_width else f"{layer.width} to {layer.output_width} wide"


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
