"""The table of a block as a heat map: widths up, sizes across, and the least loss of each cell in its colour."""

from collections.abc import Iterable

from formwright.report.blocks import COLUMNS, Grid
from formwright.report.markup import Markup, join, tag
from formwright.report.palette import luminance

_CELL_WIDTH, _CELL_HEIGHT, _LEFT, _BELOW = 46, 30, 44, 22
_WORST, _BEST = (239, 237, 231), (51, 85, 139)
_LARGE = 1e5  # parameters; fewer are written in full
_DARK = 0.179  # of luminance: where black and white contrast equally


def draw_grid(grid: Grid, block: int, scale: tuple[float, float]) -> Markup:
    """Draw the table of a block, counted from 0; `scale` is the least and the greatest loss that colours stand for."""
    height = _CELL_HEIGHT * len(grid.widths)
    words = [_width(grid, row) for row in range(len(grid.widths))] + list(_sizes(grid, height))
    cells = [_cell(grid, block, place, scale) for place in sorted(grid.best)]
    size = f"0 0 {_LEFT + COLUMNS * _CELL_WIDTH + 8} {height + _BELOW}"
    label = f"Block {block + 1}: least loss by width and size"
    return tag("svg", *words, *cells, viewBox=size, role="img", aria_label=label, class_="heat")


def loss_scale(grids: Iterable[Grid]) -> tuple[float, float]:
    """Give the least and the greatest loss that is shown in some tables."""
    shown = [entry.loss for grid in grids for entry in grid.best.values()]
    return min(shown), max(shown)


def _cell(grid: Grid, block: int, place: tuple[int, int], scale: tuple[float, float]) -> Markup:
    entry = grid.best[place]
    x, y = _LEFT + place[1] * _CELL_WIDTH, place[0] * _CELL_HEIGHT
    colour = _colour(entry.loss, scale)
    told = f"width {entry.width}, {', '.join(entry.operations)}: loss {entry.loss:.4f}, {entry.params:,} parameters"
    box = tag("rect", x=x + 1, y=y + 1, width=_CELL_WIDTH - 2, height=_CELL_HEIGHT - 2, rx=4, fill=colour)
    ink = "#000000" if luminance(colour) > _DARK else "#FFFFFF"
    words = tag("text", f"{entry.loss:.2f}", x=x + _CELL_WIDTH / 2, y=y + 20, text_anchor="middle", fill=ink)
    return tag("g", tag("title", told), box, words, class_="cell", data_block=block, data_cell=f"{place[0]}-{place[1]}")


def _colour(loss: float, scale: tuple[float, float]) -> str:
    low, high = scale
    share = (high - loss) / (high - low) if high > low else 1.0
    mixed = (round(worst + share * (best - worst)) for worst, best in zip(_WORST, _BEST, strict=True))
    return "#" + "".join(f"{channel:02X}" for channel in mixed)


def _width(grid: Grid, row: int) -> Markup:
    y = row * _CELL_HEIGHT + 20
    return tag("text", str(grid.widths[row]), x=_LEFT - 8, y=y, text_anchor="end", class_="axis")


def _sizes(grid: Grid, height: int) -> Iterable[Markup]:
    for share, anchor in ((0.0, "start"), (0.5, "middle"), (1.0, "end")):
        size = grid.least + share * (grid.most - grid.least)
        x = _LEFT + share * COLUMNS * _CELL_WIDTH
        yield tag("text", _short(size), x=x, y=height + 16, text_anchor=anchor, class_="axis")


def legend(scale: tuple[float, float]) -> Markup:
    """Say what the colours mean."""
    inks = ("#FFFFFF", "#000000")
    least, most = (
        tag("span", f"{loss:.2f}", style=f"background:{_colour(loss, scale)};color:{ink}", class_="swatch")
        for loss, ink in zip(scale, inks, strict=True)
    )
    return join("The least loss shown is ", least, ", the greatest ", most, ".")


def _short(size: float) -> str:
    return f"{size / 1e6:.3g}M" if size >= _LARGE else f"{size:,.0f}"
