"""Widths of a compressed model's layers as SVG: those that the search space allows, and those of one model."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from formwright.report.compression import CompressionFacts, Widths
from formwright.report.svg_canvas import element, inline, path, plain, point, text

Part = Literal["heads", "channels"]
_BARS_WIDTH, _BARS_COLUMN, _WIDEST_BAR = (
    440.0,
    36.0,
    38.0,
)  # width of the drawing, of a column at least, of a bar at most
_BARS_TOP, _BARS_HEIGHT = 17.0, 46.0  # of the bars; the words above and below them take a line each
_LEFT, _RIGHT = 66.0, 16.0  # room of the axis, and of the numbers behind the last column
_LEAST, _COLUMN = 1160.0, 56.0  # width of the whole drawing and of a column at least
_HEAD, _OUT = 30.0, 22.0  # room above the full width, and below no width at all, where parts are left out
_APART = 11.0  # from one number to the next above it, at least
_BAR, _DOT = 16.0, 4.5
_NAMES = {"heads": "Attention heads", "channels": "Feed-forward channels"}


def listed(widths: Iterable[int]) -> str:
    """Join widths with commas."""
    return ", ".join(str(one) if one else "left out" for one in widths)


def draw_widths(part: Part, chosen: Sequence[int], full: Sequence[int]) -> str:
    """Draw one part of every layer as a bar, with its width above and the number of the layer below."""
    width, most = max(_BARS_WIDTH, _BARS_COLUMN * len(full)), max(*full, *chosen, 1)
    column = width / len(full)
    layers = [
        _layer(part, index, column, (one, whole, most))
        for index, (one, whole) in enumerate(zip(chosen, full, strict=True))
    ]
    return inline(width, _BARS_TOP + _BARS_HEIGHT + 16, f"{part} of layers 1 to {len(full)}: {listed(chosen)}", layers)


def _layer(part: Part, index: int, column: float, widths: tuple[int, int, int]) -> str:
    """Draw one layer; `widths` are its own, its full width, and the full width of the widest layer."""
    chosen, full, most = widths
    middle, bottom = (index + 0.5) * column, _BARS_TOP + _BARS_HEIGHT
    tall, all_of_it = max(1.5, _BARS_HEIGHT * chosen / most), _BARS_HEIGHT * full / most
    wide = min(_WIDEST_BAR, column - 8)
    place: dict[str, str | float] = {"x": middle - wide / 2, "width": wide, "rx": 2}
    bars = [element("rect", **place, y=bottom - all_of_it, height=all_of_it, class_="full" if chosen else "full out")]
    if chosen:
        bars.append(element("rect", **place, y=bottom - tall, height=tall, class_=part))
    words = f"{chosen} of {full} {part}" if chosen else f"no {part}: left out"
    number = text(middle, _BARS_TOP - 5, str(chosen) if chosen else "out", text_anchor="middle")
    name = text(middle, bottom + 13, str(index + 1), class_="quiet small", text_anchor="middle")
    return element("g", "".join([element("title", plain(f"Layer {index + 1}: {words}")), *bars, number, name]))


def draw_space(found: CompressionFacts) -> str:
    """Draw the allowed heads of each layer above its allowed channels."""
    width = max(_LEAST, _LEFT + _COLUMN * found.layers + _RIGHT)
    heads = _Panel("heads", found.heads, found.full_heads, width, top=0.0, tall=140.0)
    channels = _Panel("channels", found.channels, found.full_channels, width, top=heads.bottom + 22, tall=170.0)
    y = channels.bottom + 25
    axis = [text(_LEFT - 12, y, "layer", class_="quiet", text_anchor="end")]
    axis += [text(heads.middle(index), y, str(index + 1), text_anchor="middle") for index in range(found.layers)]
    label = (
        f"Widths that each of the {found.layers} layers of {found.model} may have: attention heads above, "
        "feed-forward channels below. The table after it gives them as numbers."
    )
    return inline(width, y + 6, label, [*heads.draw(), *channels.draw(), *axis])


@dataclass(frozen=True)
class _Panel:
    """The half of the drawing that shows one part of every layer, between `top` and `bottom`."""

    part: Part
    widths: Widths
    full: tuple[int, ...]
    width: float
    top: float
    tall: float

    @property
    def bottom(self) -> float:
        return self.top + _HEAD + self.tall + (_OUT if self._skips else 0)

    @property
    def _skips(self) -> bool:
        return any(0 in layer for layer in self.widths)

    @property
    def _most(self) -> int:
        return max(1, *self.full, *(one for layer in self.widths for one in layer))

    def middle(self, index: int) -> float:
        return _LEFT + (index + 0.5) * (self.width - _LEFT - _RIGHT) / len(self.full)

    def draw(self) -> list[str]:
        title = text(0, self.top + 13, _NAMES[self.part], class_="strong")
        return [title, *self._lines(), *(self._layer(index) for index in range(len(self.full)))]

    def _y(self, width: int) -> float:
        """Return the y of a width; zero is set apart so that it is not mistaken for a small width."""
        return self.top + _HEAD + self.tall * (1 - width / self._most) if width else self.bottom

    def _lines(self) -> list[str]:
        ticks = {self._y(one): str(one) for one in (self._most, self._most // 2) if one}
        ticks[self.bottom] = "left out" if self._skips else "0"
        lines = [path(f"M{point(_LEFT, y)}H{self.width:.1f}", "none", class_="rule") for y in ticks]
        look: dict[str, str | float] = {"class_": "quiet", "text_anchor": "end"}
        return lines + [text(_LEFT - 12, y + 4, words, **look) for y, words in ticks.items()]

    def _layer(self, index: int) -> str:
        x, full, widths = self.middle(index), self.full[index], self.widths[index]
        tall = self.tall * full / self._most
        low = self.top + _HEAD + self.tall
        words = listed(widths)
        title = element("title", plain(f"Layer {index + 1}, {_NAMES[self.part].lower()}: {words}; full {full}"))
        bar = element("rect", x=x - _BAR / 2, y=low - tall, width=_BAR, height=tall, class_="full", rx=3)
        dots = [
            element("circle", cx=x, cy=self._y(one), r=_DOT, class_=self.part if one else "hollow") for one in widths
        ]
        numbers = [
            text(x + _BAR / 2 + 5, self._y(one) + 4, str(one), class_="over") for one in self._numbered(widths) if one
        ]
        return element("g", "".join([title, bar, *dots, *numbers]))

    def _numbered(self, widths: Sequence[int]) -> list[int]:
        """Choose the widths with room for a label: the largest, then from below all that are far enough apart."""
        kept: list[int] = []
        for one in (widths[-1], *widths[:-1]):
            if all(abs(self._y(one) - self._y(other)) >= _APART for other in kept):
                kept.append(one)
        return kept
