"""Cells as small graphs: branches in two columns, joined in circles, wires between the states."""

from dataclasses import dataclass
from functools import cached_property

from formwright.arch.check import branches
from formwright.arch.layers import Branch, Cell, Junction
from formwright.arch.ops import CrossAttention
from formwright.report.fold import Run
from formwright.report.svg_canvas import (
    INK,
    LINE,
    SHEET,
    STRIP,
    WIRE,
    Drawn,
    Port,
    element,
    number,
    path,
    point,
    rect,
    text,
)
from formwright.report.svg_column import Column
from formwright.report.svg_layers import HEADER, pile_height, sheet, tiles, title
from formwright.report.words import describe_branch

_BRANCH, _RADIUS, _LEAST = 16, 8, 66  # heights of a branch, of half a circle, and of the smallest row
_SIGNS = {"add": "+", "concatenate": "\N{DOUBLE VERTICAL LINE}", "multiply": "\N{MULTIPLICATION SIGN}"}


@dataclass(frozen=True)
class _Wire:
    """A wire that skips states: it starts at a state and enters a branch of a later junction, left or right of the middle."""

    state: int
    junction: int
    side: int


@dataclass(frozen=True)
class _Plan:
    """Where the states and branches of a cell stand."""

    column: Column
    cell: Cell
    top: float

    @cached_property
    def rows(self) -> tuple[float, ...]:
        """Give the y where each junction's row starts, and the end of the last."""
        heights = [max(_LEAST, 10 + LINE * len(_words(self.column, item, 1))) for item in self.cell.junctions]
        return tuple(self.top + HEADER - 4 + sum(heights[:index]) for index in range(len(heights) + 1))

    def state(self, index: int) -> float:
        """Give the y of a state's circle; state 0 is the input."""
        return self.rows[index] - (0 if index == 0 else _RADIUS)

    @cached_property
    def lanes(self) -> dict[_Wire, int]:
        """Give each wire that skips states a lane beside the branches in which it meets no other."""
        taken: dict[_Wire, int] = {}
        for wire in sorted(_skips(self.cell), key=lambda wire: (wire.side, wire.state, wire.junction)):
            rivals = {lane for other, lane in taken.items() if other.side == wire.side and other.junction > wire.state}
            taken[wire] = min(set(range(len(rivals) + 1)) - rivals)
        return taken

    @cached_property
    def quarter(self) -> float:
        """Give how far the branches stand from the middle."""
        return (self.column.inside(self.cell.width) - 2 * self.margin) / 4

    @cached_property
    def margin(self) -> float:
        """Give the space that lanes take on either side."""
        return min(8.0 * (1 + max(self.lanes.values(), default=-1)), self.column.inside(self.cell.width) / 6)

    def lane(self, wire: _Wire) -> float:
        """Give the x of a wire's lane."""
        step = self.margin / (1 + max(self.lanes.values()))
        return self.column.centre + wire.side * (2 * self.quarter + step * (self.lanes[wire] + 1))

    def branch(self, junction: Junction, side: int) -> float:
        """Give the x of a branch's middle; a branch without a partner stands in the middle of the cell."""
        return self.column.centre + (side * self.quarter if junction.right is not None else 0)


def cell_box(column: Column, run: Run, cell: Cell, top: float) -> Drawn:
    """Draw a cell."""
    plan = _Plan(column, cell, top)
    bottom = plan.rows[-1] + 14
    elements = [*sheet(column, cell.width, top, bottom - top, run.times), title(column, run, top)]
    left, right = column.left(cell.width), column.left(cell.width) + column.box(cell.width)
    ports = [Port(left, right, bottom - 12, layer=run.last)]
    for index, junction in enumerate(cell.junctions, start=1):
        elements += _wires(plan, index, junction) + _branches(plan, index, junction) + _join(plan, index, junction)
        middle = (plan.rows[index - 1] + plan.rows[index]) / 2
        elements += column.words(middle, _words(column, junction, index))
        for side, branch in _sides(junction):
            if isinstance(branch.operation, CrossAttention):
                y = _top(plan, index) + _BRANCH / 2 + side * 3
                ports.append(Port(left, right, y, reads=branch.operation.layers))
    elements.append(_circle(column.centre, plan.state(0), 4, INK))
    return Drawn(tuple(elements), bottom + pile_height(run.times), tuple(ports))


def _words(column: Column, junction: Junction, index: int) -> list[str]:
    words = column.broken(f"{index}: {describe_branch(junction.left)}")
    if junction.right is not None:
        words += column.broken(f"{junction.combine} {describe_branch(junction.right)}")
    return words


def _sides(junction: Junction) -> list[tuple[int, Branch]]:
    return [(-1, junction.left)] if junction.right is None else [(-1, junction.left), (1, junction.right)]


def _skips(cell: Cell) -> list[_Wire]:
    junctions = enumerate(cell.junctions, start=1)
    sides = [(index, side, branch) for index, junction in junctions for side, branch in _sides(junction)]
    return [_Wire(branch.input, index, side) for index, side, branch in sides if branch.input < index - 1]


def _top(plan: _Plan, index: int) -> float:
    """Give the y where the branches of a junction start."""
    return (plan.rows[index - 1] + plan.rows[index] - 2 * _RADIUS - _BRANCH) / 2 + 2


def _branches(plan: _Plan, index: int, junction: Junction) -> list[str]:
    widest = max(branch.width for _, branch in branches(plan.cell))
    elements = []
    for side, branch in _sides(junction):
        x, y = plan.branch(junction, side), _top(plan, index)
        room = max(8.0, (2 * plan.quarter - 8) * branch.width / widest)
        elements += tiles(branch.operation, x, y, room, _BRANCH)
        if branch.norm:
            elements.append(rect(x - room / 2, y - 6, room, 3, STRIP, rx=1.5))
    return elements


def _wires(plan: _Plan, index: int, junction: Junction) -> list[str]:
    """Draw the wires from the states into the branches of a junction, and from them into its circle."""
    data = []
    for side, branch in _sides(junction):
        x, top = plan.branch(junction, side), _top(plan, index)
        wire = _Wire(branch.input, index, side)
        data.append(_lane_path(plan, wire, x, top) if wire in plan.lanes else _step_path(plan, index, x, top))
        end, below = plan.state(index), top + _BRANCH
        data.append(f"M{point(x, below)}C{point(x, end)} {point(x, end)} {point(plan.column.centre, end)}")
    return [path(item, stroke_width=1.2) for item in data]


def _step_path(plan: _Plan, index: int, x: float, top: float) -> str:
    start = plan.state(index - 1)
    return f"M{point(plan.column.centre, start)}C{point(x, start)} {point(x, start)} {point(x, top)}"


def _lane_path(plan: _Plan, wire: _Wire, x: float, top: float) -> str:
    start, lane, turn = plan.state(wire.state), plan.lane(wire), 5 * wire.side
    down = f"H{number(lane - turn)}q{number(turn)},0 {number(turn)},5V{number(top - 15)}"
    return f"M{point(plan.column.centre, start)}{down}q0,5 {number(-turn)},5H{number(x)}V{number(top)}"


def _join(plan: _Plan, index: int, junction: Junction) -> list[str]:
    x, y = plan.column.centre, plan.state(index)
    if junction.right is None:
        return [_circle(x, y, 4, INK)]
    sign = text(x, y + 4.2, _SIGNS[junction.combine], text_anchor="middle", font_weight="bold")
    return [_circle(x, y, _RADIUS, SHEET), sign]


def _circle(x: float, y: float, radius: float, fill: str) -> str:
    return element("circle", cx=x, cy=y, r=radius, fill=fill, stroke=WIRE, class_="state")
