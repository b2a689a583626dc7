"""Where the states, branches and wires of a cell stand in its box."""

from dataclasses import dataclass
from functools import cached_property

from formwright.arch.layers import Branch, Cell, Junction
from formwright.report.svg_canvas import LINE
from formwright.report.svg_column import Column
from formwright.report.svg_layers import HEADER
from formwright.report.words import describe_branch

BRANCH, RADIUS = 16, 8  # the height of a branch, and half that of a circle
_LEAST_ROW, _EDGE = 66, 10
_APART = 18  # between the words of two junctions


@dataclass(frozen=True)
class Wire:
    """A wire that skips states, from a state to a branch of a later junction; `side` is -1 for left and 1 for right."""

    state: int
    junction: int
    side: int


@dataclass(frozen=True)
class Plan:
    """The geometry of one cell: a row for each junction, with branches left and right of the middle."""

    column: Column
    cell: Cell
    top: float

    @cached_property
    def rows(self) -> tuple[float, ...]:
        """Give the y where each junction's row starts, and the end of the last."""
        heights = [max(_LEAST_ROW, _APART + LINE * len(words_of(self.column, item, 1))) for item in self.cell.junctions]
        return tuple(self.top + HEADER - 4 + sum(heights[:index]) for index in range(len(heights) + 1))

    def state(self, index: int) -> float:
        """Give the y of a state's circle; state 0 is the input."""
        return self.rows[index] - (RADIUS if index else 0)

    def branch(self, index: int, side: int) -> tuple[float, float]:
        """Give the middle and the top of a branch; one without a partner stands in the middle of the cell."""
        alone = self.cell.junctions[index - 1].right is None
        x = self.column.centre + (0 if alone else side * self.quarter)
        return x, (self.rows[index - 1] + self.rows[index] - 2 * RADIUS - BRANCH) / 2 + 2

    @cached_property
    def lanes(self) -> dict[Wire, int]:
        """Give each wire that skips states a lane beside the branches, in which it meets no other."""
        taken: dict[Wire, int] = {}
        for wire in sorted(_skips(self.cell), key=lambda wire: (wire.side, wire.state, wire.junction)):
            rivals = {lane for other, lane in taken.items() if other.side == wire.side and other.junction > wire.state}
            taken[wire] = min(set(range(len(rivals) + 1)) - rivals)
        return taken

    def lane(self, wire: Wire) -> float:
        """Give the x of a wire's lane."""
        step = self.margin / (1 + max(self.lanes.values()))
        return self.column.centre + wire.side * (2 * self.quarter + step * (self.lanes[wire] + 1))

    @cached_property
    def quarter(self) -> float:
        """Give how far the branches stand from the middle."""
        return (self._inside - 2 * self.margin) / 4

    @cached_property
    def margin(self) -> float:
        """Give the space that lanes take on either side."""
        return min(8.0 * (1 + max(self.lanes.values(), default=-1)), self._inside / 5)

    @property
    def _inside(self) -> float:
        return self.column.box(self.cell.width) - 2 * _EDGE


def words_of(column: Column, junction: Junction, index: int) -> list[str]:
    """Say what a junction does, in lines that fit beside it."""
    words = column.broken(f"{index}: {describe_branch(junction.left)}")
    if junction.right is not None:
        words += column.broken(f"{junction.combine} {describe_branch(junction.right)}")
    return words


def sides(junction: Junction) -> list[tuple[int, Branch]]:
    """List the branches of a junction, each with the side on which it stands."""
    return [(-1, junction.left)] if junction.right is None else [(-1, junction.left), (1, junction.right)]


def _skips(cell: Cell) -> list[Wire]:
    junctions = enumerate(cell.junctions, start=1)
    found = [(index, side, branch) for index, junction in junctions for side, branch in sides(junction)]
    return [Wire(branch.input, index, side) for index, side, branch in found if branch.input < index - 1]
