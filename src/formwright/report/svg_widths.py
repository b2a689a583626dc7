"""The widths of one part of every layer as bars, each within the full width of that layer."""

from collections.abc import Iterable, Sequence
from typing import Literal

from formwright.report.svg_canvas import element, inline, plain, text

Part = Literal["heads", "channels"]
_LEAST, _COLUMN, _BAR = 440.0, 36.0, 38.0  # width of the drawing, of a column at least, of a bar at most
_TOP, _TALL = 17.0, 46.0  # of the bars; the words above and below them take a line each


def listed(widths: Iterable[int]) -> str:
    """Name widths one after the other."""
    return ", ".join(str(one) if one else "left out" for one in widths)


def draw_widths(part: Part, chosen: Sequence[int], full: Sequence[int]) -> str:
    """Draw what each layer has of a part: its number above, and below which layer it is."""
    width, most = max(_LEAST, _COLUMN * len(full)), max(*full, *chosen, 1)
    column = width / len(full)
    layers = [
        _layer(part, index, column, (one, whole, most))
        for index, (one, whole) in enumerate(zip(chosen, full, strict=True))
    ]
    return inline(width, _TOP + _TALL + 16, f"{part} of layers 1 to {len(full)}: {listed(chosen)}", layers)


def _layer(part: Part, index: int, column: float, widths: tuple[int, int, int]) -> str:
    """Draw one layer, whose `widths` are its own, the full one, and the full one of the widest layer."""
    chosen, full, most = widths
    middle, bottom = (index + 0.5) * column, _TOP + _TALL
    tall, all_of_it = max(1.5, _TALL * chosen / most), _TALL * full / most
    wide = min(_BAR, column - 8)
    place: dict[str, str | float] = {"x": middle - wide / 2, "width": wide, "rx": 2}
    bars = [element("rect", **place, y=bottom - all_of_it, height=all_of_it, class_="full" if chosen else "full out")]
    if chosen:
        bars.append(element("rect", **place, y=bottom - tall, height=tall, class_=part))
    words = f"{chosen} of {full} {part}" if chosen else f"no {part}: left out"
    number = text(middle, _TOP - 5, str(chosen) if chosen else "out", text_anchor="middle")
    name = text(middle, bottom + 13, str(index + 1), class_="quiet small", text_anchor="middle")
    return element("g", "".join([element("title", plain(f"Layer {index + 1}: {words}")), *bars, number, name]))
