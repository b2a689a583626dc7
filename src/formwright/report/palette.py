"""Colours of a drawing: each operation declares one colour, one glyph and one name, the same in every drawing.

The colours of ours are Paul Tol's "muted" scheme, which colour-blind people can distinguish. Glyphs replace them where
there is no colour.
"""

from formwright.arch.card import Card
from formwright.arch.ops import Swatch, all_operations


def ink(colour: str) -> str:
    """Return the text colour with the better contrast on a colour."""
    # where black and white contrast equally, by the formula of the Web Content Accessibility Guidelines
    return "#000000" if luminance(colour) > 0.179 else "#FFFFFF"


def swatches_of(card: Card) -> tuple[Swatch, ...]:
    """List the entries of a card's legend, those of the same kind together."""
    used = {operation.SWATCH for stack in card.stacks for layer in stack.layers for _, operation in layer.operations}
    listed = (kind.SWATCH for kind in all_operations().values())
    return tuple(one for one in dict.fromkeys([*listed, *sorted(used)]) if one in used)


def luminance(colour: str) -> float:
    """Return the relative luminance of an RGB colour: 0 for black, 1 for white."""
    channels = (int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5))
    linear = [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in channels]
    return sum(weight * value for weight, value in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
