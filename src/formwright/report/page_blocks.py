"""Panels of a block-wise compression: heat maps of each block's candidates, and the models chosen for any size."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from formwright.pipeline.blocks_choose import BlockFacts, ChainFacts, SizeFacts
from formwright.report.markup import Markup, asset, join, note, row, table, tag
from formwright.report.palette import luminance
from formwright.report.panels import Panel

COLUMNS = 12
_CELL_WIDTH, _CELL_HEIGHT, _LEFT, _BELOW = 46, 30, 44, 22
_WORST, _BEST = (239, 237, 231), (51, 85, 139)
_LARGE = 1e5  # parameters; fewer are written in full
_DARK = 0.179  # of luminance: where black and white contrast equally
_ABOUT = (
    "Every cell is the best candidate of its width (row) and number of parameters (column) after the last round. "
    "Losses are squared distances from the teacher's output of the block, as a share of its variance. Framed "
    "cells are the choice for the size above: the least sum of losses within it."
)


@dataclass(frozen=True)
class Grid:
    """The candidates of one block in cells: a row for each width, a column for each range of sizes."""

    entries: tuple[ChainFacts, ...]
    widths: tuple[int, ...]
    least: int
    most: int

    @classmethod
    def of(cls, entries: Sequence[ChainFacts]) -> "Grid":
        sizes = [entry.params for entry in entries]
        return cls(tuple(entries), tuple(sorted({entry.width for entry in entries})), min(sizes), max(sizes))

    def cell(self, entry: ChainFacts) -> tuple[int, int]:
        """Return the row and the column of a candidate."""
        share = (entry.params - self.least) / max(self.most - self.least, 1)
        return self.widths.index(entry.width), min(int(share * COLUMNS), COLUMNS - 1)

    @property
    def best(self) -> dict[tuple[int, int], ChainFacts]:
        """Return the candidate of least loss in each cell that is not empty."""
        found: dict[tuple[int, int], ChainFacts] = {}
        for entry in sorted(self.entries, key=lambda entry: -entry.loss):
            found[self.cell(entry)] = entry
        return found


def block_data(facts: BlockFacts) -> dict[str, Any]:
    """Return the data for the script of the page."""
    grids = list(map(Grid.of, facts.blocks))
    return {"options": [_option(option, grids) for option in facts.options]}


def _option(option: SizeFacts, grids: Sequence[Grid]) -> dict[str, Any]:
    blocks = []
    for grid, place in zip(grids, option.chosen, strict=True):
        entry = grid.entries[place]
        row, column = grid.cell(entry)
        chosen = {"width": entry.width, "operations": list(entry.operations), "loss": float(f"{entry.loss:.4g}")}
        blocks.append(chosen | {"cell": f"{row}-{column}"})
    return {
        "limit": option.limit,
        "table": option.table,
        "params": option.params,
        "ms": float(f"{option.latency_ms:.4g}"),
        "loss": float(f"{option.loss:.4g}"),
        "blocks": blocks,
    }


def draw_grid(grid: Grid, block: int, scale: tuple[float, float]) -> Markup:
    """Draw the grid of a block, counted from 0; `scale` is the least and the greatest loss of the colour scale."""
    height = _CELL_HEIGHT * len(grid.widths)
    words = [
        tag("text", str(width), x=_LEFT - 8, y=row * _CELL_HEIGHT + 20, text_anchor="end", class_="axis")
        for row, width in enumerate(grid.widths)
    ]
    for share, anchor in ((0.0, "start"), (0.5, "middle"), (1.0, "end")):
        size = grid.least + share * (grid.most - grid.least)
        shown = f"{size / 1e6:.3g}M" if size >= _LARGE else f"{size:,.0f}"
        x = _LEFT + share * COLUMNS * _CELL_WIDTH
        words.append(tag("text", shown, x=x, y=height + 16, text_anchor=anchor, class_="axis"))
    cells = [_cell(grid, block, place, scale) for place in sorted(grid.best)]
    box = f"0 0 {_LEFT + COLUMNS * _CELL_WIDTH + 8} {height + _BELOW}"
    label = f"Block {block + 1}: least loss by width and size"
    return tag("svg", *words, *cells, viewBox=box, role="img", aria_label=label, class_="heat")


def loss_scale(grids: Iterable[Grid]) -> tuple[float, float]:
    """Return the least and the greatest loss that the grids show."""
    shown = [entry.loss for grid in grids for entry in grid.best.values()]
    return min(shown), max(shown)


def _cell(grid: Grid, block: int, place: tuple[int, int], scale: tuple[float, float]) -> Markup:
    entry = grid.best[place]
    x, y = _LEFT + place[1] * _CELL_WIDTH, place[0] * _CELL_HEIGHT
    colour = _colour(entry.loss, scale)
    label = f"width {entry.width}, {', '.join(entry.operations)}: loss {entry.loss:.4f}, {entry.params:,} parameters"
    box = tag("rect", x=x + 1, y=y + 1, width=_CELL_WIDTH - 2, height=_CELL_HEIGHT - 2, rx=4, fill=colour)
    ink = "#000000" if luminance(colour) > _DARK else "#FFFFFF"
    words = tag("text", f"{entry.loss:.2f}", x=x + _CELL_WIDTH / 2, y=y + 20, text_anchor="middle", fill=ink)
    return tag(
        "g", tag("title", label), box, words, class_="cell", data_block=block, data_cell=f"{place[0]}-{place[1]}"
    )


def _colour(loss: float, scale: tuple[float, float]) -> str:
    low, high = scale
    share = (high - loss) / (high - low) if high > low else 1.0
    mixed = (round(worst + share * (best - worst)) for worst, best in zip(_WORST, _BEST, strict=True))
    return "#" + "".join(f"{channel:02X}" for channel in mixed)


def _legend(scale: tuple[float, float]) -> Markup:
    inks = ("#FFFFFF", "#000000")
    least, most = (
        tag("span", f"{loss:.2f}", style=f"background:{_colour(loss, scale)};color:{ink}", class_="swatch")
        for loss, ink in zip(scale, inks, strict=True)
    )
    return join("The least loss shown is ", least, ", the greatest ", most, ".")


def sizes_section(facts: BlockFacts) -> Markup:
    """Write a slider over the sizes, the chain that is chosen, and the grids of all blocks."""
    candidates = sum(map(len, facts.blocks))
    words = (
        f"{facts.teacher} has {facts.params:,} parameters. It taught {len(facts.blocks)} blocks separately on "
        f"{facts.text}; {candidates:,} candidates remain, and models of any size can be assembled from them."
    )
    slider = tag("input", type="range", id="size", min=0, value=0, step=1, aria_describedby="outcome")
    size = tag("label", "At most ", tag("output", id="limit"), " parameters", slider, class_="size")
    outcome = tag("p", id="outcome", class_="finding", aria_live="polite")
    chain = tag("ol", id="chain", class_="chain", aria_label="Chosen chain")
    grids = list(map(Grid.of, facts.blocks))
    scale = loss_scale(grids)
    drawn = [
        tag("div", tag("h3", f"Block {number + 1}"), tag("figure", draw_grid(grid, number, scale), tabindex=0))
        for number, grid in enumerate(grids)
    ]
    about = note(join(_ABOUT, " ", _legend(scale)))
    return join(note(words), size, outcome, chain, about, tag("div", *drawn, class_="blocks"))


def models_section(facts: BlockFacts) -> Markup:
    """List the delivered models; empty if there are none yet."""
    if not facts.models:
        return join()
    heads = ("Parameters", "Milliseconds", "predicted", "Distance before", "after distillation")
    rows = []
    for one in facts.models:
        times = [f"{time:.2f}" for time in (one.latency_ms, one.predicted_ms)]
        rows.append(row(one.name, [f"{one.params:,}", *times, f"{one.before:.4f}", f"{one.after:.4f}"]))
    about = "Distances are from the teacher's last vectors on held-out text, as a share of their variance."
    return join(note(about), table(["Model", *((head, "number") for head in heads)], rows))


SIZES = Panel(
    sizes_section,
    "One chain for every size",
    source="stage",
    rank=40,
    data=block_data,
    script=asset("blocks.js"),
    style=asset("blocks.css"),
)
MODELS = Panel(models_section, "Delivered models", source="stage", rank=41)
