"""One colour, one glyph and one name for each kind of operation, the same in every drawing.

The colours are Paul Tol's "muted" scheme, which colour-blind people can distinguish. Glyphs replace them where there is
no colour.
"""

from dataclasses import dataclass

from formwright.arch.card import Card
from formwright.arch.check import operations
from formwright.arch.ops import OPERATIONS, Operation


@dataclass(frozen=True)
class Swatch:
    """How one kind of operation is drawn; `colour` is a hexadecimal RGB such as `#332288`."""

    name: str
    colour: str
    glyph: str
    filled: bool = True  # identity is no colour: it leaves its place empty

    @property
    def ink(self) -> str:
        """Return the text colour with the better contrast on this colour."""
        # where black and white contrast equally, by the formula of the Web Content Accessibility Guidelines
        return "#000000" if luminance(self.colour) > 0.179 else "#FFFFFF"


_SWATCHES = {
    "attention": Swatch("self-attention", "#332288", "●"),
    "cross-attention": Swatch("cross-attention", "#CC6677", "○"),
    "transform": Swatch("Fourier or cosine transform", "#DDCC77", "≈"),
    "dynamic-convolution": Swatch("dynamic convolution", "#44AA99", "▲"),
    "separable-convolution": Swatch("separable convolution", "#117733", "◆"),
    "lightweight-convolution": Swatch("lightweight convolution", "#88CCEE", "△"),
    "convolution": Swatch("convolution or dense map", "#999933", "■"),
    "gated-linear-unit": Swatch("gated linear unit", "#AA4499", "◇"),
    "op-graph": Swatch("op graph", "#882255", "ƒ"),
    "identity": Swatch("identity", "#DDDDDD", "·", filled=False),
}


def swatch(operation: Operation) -> Swatch:
    return _SWATCHES[operation.TYPE]


def swatches_of(card: Card) -> tuple[Swatch, ...]:
    """List the entries of a card's legend, in the order of `OPERATIONS`."""
    used = {operation.TYPE for stack in card.stacks for layer in stack.layers for _, operation in operations(layer)}
    return tuple(_SWATCHES[kind.TYPE] for kind in OPERATIONS if kind.TYPE in used)


def luminance(colour: str) -> float:
    """Return the relative luminance of an RGB colour: 0 for black, 1 for white."""
    channels = (int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5))
    linear = [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in channels]
    return sum(weight * value for weight, value in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
