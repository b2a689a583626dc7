"""What the page of a block-wise compression shows: the table of each block, and what would be chosen for every size."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

COLUMNS = 12


@dataclass(frozen=True)
class Entry:
    """One candidate of a block: its width, its operations, its loss, and what it costs."""

    width: int
    operations: tuple[str, ...]
    loss: float
    params: int
    latency_ms: float


@dataclass(frozen=True)
class Option:
    """What is chosen where a model may have `limit` parameters: the table's width, and a place in each block."""

    limit: int
    table: int
    chosen: tuple[int, ...]
    params: int
    latency_ms: float
    loss: float


@dataclass(frozen=True)
class Model:
    """A delivered model; `before` and `after` are its distances from the teacher before and after it was taught."""

    name: str
    params: int
    latency_ms: float
    predicted_ms: float
    before: float
    after: float


@dataclass(frozen=True)
class Grid:
    """The table of one block in cells: a row for each width, a column for each range of sizes."""

    entries: tuple[Entry, ...]
    widths: tuple[int, ...]
    least: int
    most: int

    @classmethod
    def of(cls, entries: Sequence[Entry]) -> "Grid":
        """Lay out a table."""
        sizes = [entry.params for entry in entries]
        return cls(tuple(entries), tuple(sorted({entry.width for entry in entries})), min(sizes), max(sizes))

    def cell(self, entry: Entry) -> tuple[int, int]:
        """Give the row and the column of a candidate."""
        share = (entry.params - self.least) / max(self.most - self.least, 1)
        return self.widths.index(entry.width), min(int(share * COLUMNS), COLUMNS - 1)

    @property
    def best(self) -> dict[tuple[int, int], Entry]:
        """Give the candidate of least loss in each cell that has any."""
        found: dict[tuple[int, int], Entry] = {}
        for entry in sorted(self.entries, key=lambda entry: -entry.loss):
            found[self.cell(entry)] = entry
        return found


@dataclass(frozen=True)
class BlockFacts:
    """Everything that the page shows; `options` are in the order of their sizes."""

    teacher: str
    params: int
    text: str
    blocks: tuple[tuple[Entry, ...], ...]
    options: tuple[Option, ...]
    models: tuple[Model, ...] = field(default=())

    @property
    def grids(self) -> tuple[Grid, ...]:
        """Lay out the tables of all blocks."""
        return tuple(map(Grid.of, self.blocks))


def page_data(facts: BlockFacts) -> dict[str, Any]:
    """Give what the script of the page works with."""
    grids = facts.grids
    return {"options": [_option(option, grids) for option in facts.options]}


def _option(option: Option, grids: Sequence[Grid]) -> dict[str, Any]:
    blocks = []
    for grid, place in zip(grids, option.chosen, strict=True):
        entry = grid.entries[place]
        row, column = grid.cell(entry)
        told = {"width": entry.width, "operations": list(entry.operations), "loss": float(f"{entry.loss:.4g}")}
        blocks.append(told | {"cell": f"{row}-{column}"})
    return {
        "limit": option.limit,
        "table": option.table,
        "params": option.params,
        "ms": float(f"{option.latency_ms:.4g}"),
        "loss": float(f"{option.loss:.4g}"),
        "blocks": blocks,
    }
