"""Where things stand in one column of an SVG drawing: shapes on one side, words on the other."""

import re
from dataclasses import dataclass

from formwright.report.svg_canvas import LETTER, LINE, QUIET, Anchor, Port, lines, text
from formwright.report.wrap import wrapped

_TIMES = re.compile(r" x (?=\d)")


@dataclass(frozen=True)
class Column:
    """The geometry of one stack: `centre` of its boxes, `room` for the widest, and where the words stand."""

    centre: float
    room: float
    words_at: float
    words_room: float
    anchor: Anchor
    scale: float  # pixels for one unit of layer width
    bar_scale: float = 0.0  # pixels for one unit of feed-forward width

    def box(self, width: int) -> float:
        """Give the width in pixels of a box for layers of this width."""
        return max(44.0, width * self.scale)

    def left(self, width: int) -> float:
        """Give the x where the box for this width starts."""
        return self.centre - self.box(width) / 2

    def inside(self, width: int) -> float:
        """Give the pixels that parts inside the box may take."""
        return self.box(width) - 2 * min(20.0, self.box(width) / 5)

    def port(self, width: int, y: float, *, layer: int = 0, reads: int = 0) -> Port:
        """Give the port of a box for this width at the height y."""
        return Port(self.left(width), self.left(width) + self.box(width), y, layer, reads)

    def title(self, y: float, words: str) -> str:
        """Write the bold first line beside a shape."""
        return text(self.words_at, y, words, font_weight="bold", text_anchor=self.anchor)

    def words(self, middle: float, words: list[str]) -> list[str]:
        """Write lines of words beside a shape, centred on the height `middle`."""
        first = middle - (len(words) - 1) * LINE / 2 + 4
        return lines(self.words_at, first, words, fill=QUIET, text_anchor=self.anchor)

    @property
    def letters(self) -> int:
        """Give how many letters fit on a line of words."""
        return int(self.words_room / LETTER)

    def broken(self, words: str) -> list[str]:
        """Break words into lines that fit beside the shapes, six at most."""
        return [_TIMES.sub(" \N{MULTIPLICATION SIGN} ", line) for line in wrapped(words, self.letters, most=6)]
