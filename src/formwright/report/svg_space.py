"""The space of a compressed model: one column for each layer, and in it a dot for each width that it may have."""

from collections.abc import Sequence
from dataclasses import dataclass

from formwright.report.compression import Compression, Widths
from formwright.report.svg_canvas import element, inline, path, plain, point, text
from formwright.report.svg_widths import Part, listed

_LEFT, _RIGHT = 66.0, 16.0  # room of the axis, and of the numbers behind the last column
_LEAST, _COLUMN = 1160.0, 56.0  # width of the whole drawing and of a column at least
_HEAD, _OUT = 30.0, 22.0  # room above the full width, and below no width at all, where parts are left out
_APART = 11.0  # from one number to the next above it, at least
_BAR, _DOT = 16.0, 4.5
_NAMES = {"heads": "Attention heads", "channels": "Feed-forward channels"}


def draw_space(found: Compression) -> str:
    """Draw the heads that each layer may have above the channels that it may have."""
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
        """Tell where a width stands; none at all stands apart, lest it be taken for a small one."""
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
        """Choose the widths that have room for their number: the largest, then from below all that are not too near."""
        kept: list[int] = []
        for one in (widths[-1], *widths[:-1]):
            if all(abs(self._y(one) - self._y(other)) >= _APART for other in kept):
                kept.append(one)
        return kept
