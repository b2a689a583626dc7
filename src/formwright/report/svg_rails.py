"""Cross-attention between two columns: rails that lead from the encoder layers that are read to their readers."""

from collections.abc import Sequence

from formwright.arch.card import Card
from formwright.arch.check import operations
from formwright.arch.ops import CrossAttention
from formwright.report.palette import swatch
from formwright.report.svg_canvas import Port, element, number, path, point

_STEP, _SIDE = 11, 30
_COLOUR = swatch(CrossAttention(1, 1)).colour


def rail_room(card: Card) -> float:
    """Give the space that the rails of a design need between its two columns."""
    layers = card.decoder.layers if card.decoder is not None else ()
    found = (operation for layer in layers for _, operation in operations(layer))
    kinds = {operation.layers for operation in found if isinstance(operation, CrossAttention)}
    return 2 * _SIDE + _STEP * max(len(kinds), 1)


def draw_rails(left: float, below: Sequence[Port], above: Sequence[Port], depth: int) -> list[str]:
    """Draw a rail for each number of encoder layers that is read.

    The space between the columns starts at `left`; `below` and `above` are the ports of the encoder and the decoder,
    and `depth` counts the encoder's layers.
    """
    elements = []
    for rank, reads in enumerate(sorted({port.reads for port in above if port.reads})):
        sources = [port for port in below if port.layer > depth - reads]
        readers = [port for port in above if port.reads == reads]
        elements += _rail(left + _SIDE + (rank + 0.5) * _STEP, sources, readers, 5 * rank)
    return elements


def _rail(x: float, sources: list[Port], readers: list[Port], lift: float) -> list[str]:
    """Draw one rail; `lift` keeps apart the rails that leave the same box."""
    starts = [(port.right, port.y - lift) for port in sources]
    ends = [(port.left, port.y) for port in readers]
    heights = [y for _, y in starts + ends]
    data = [f"M{point(x, min(heights))}V{number(max(heights))}"]
    data += [f"M{point(start, y)}H{number(x)}" for start, y in starts]
    data += [f"M{point(x, y)}H{number(end - 5)}" for end, y in ends]
    heads = [element("path", d=f"M{point(end - 7, y - 4)}v8l7,-4z", fill=_COLOUR) for end, y in ends]
    dots = [element("circle", cx=x, cy=y, r=2.6, fill=_COLOUR) for _, y in starts + ends]
    return [path("".join(data), _COLOUR, stroke_width=1.6, class_="cross"), *heads, *dots]
