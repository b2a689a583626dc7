"""Cells as SVG graphs: branches in two columns, joined in circles, with wires between the states."""

from dataclasses import dataclass
from functools import cached_property

from formwright.arch.check import branches
from formwright.arch.layers import Branch, Cell, Junction
from formwright.arch.ops import CrossAttention
from formwright.report.layer_runs import LayerRun, inner_projection
from formwright.report.svg_canvas import (
    INK,
    LINE,
    QUIET,
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
from formwright.report.svg_layers import HEADER, Column, pile_height, sheet, tiles, title
from formwright.report.words import describe_between, describe_branch

BRANCH, RADIUS = 16, 8  # the height of a branch, and half that of a circle
_LEAST_ROW, _EDGE = 66, 10
_WORDS_GAP = 18  # between the words of two junctions
_SIGNS = {"add": "+", "concatenate": "\N{DOUBLE VERTICAL LINE}", "multiply": "\N{MULTIPLICATION SIGN}"}


@dataclass(frozen=True)
class Wire:
    """A wire that skips states, from a state to a branch of a later junction; `side` is -1 for left and 1 for right."""

    state: int
    junction: int
    side: int


@dataclass(frozen=True)
class CellPlan:
    """The geometry of one cell: a row for each junction, with branches left and right of the centre."""

    column: Column
    cell: Cell
    top: float

    @cached_property
    def rows(self) -> tuple[float, ...]:
        """Return the y where each junction's row starts, and the end of the last."""
        heights = [
            max(_LEAST_ROW, _WORDS_GAP + LINE * len(words_of(self.column, item, 1))) for item in self.cell.junctions
        ]
        return tuple(self.top + HEADER - 4 + sum(heights[:index]) for index in range(len(heights) + 1))

    def state(self, index: int) -> float:
        """Return the y of a state's circle; state 0 is the input."""
        return self.rows[index] - (RADIUS if index else 0)

    def branch(self, index: int, side: int) -> tuple[float, float]:
        """Return the centre x and the top y of a branch; a single branch is in the middle of the cell."""
        alone = self.cell.junctions[index - 1].right is None
        x = self.column.centre + (0 if alone else side * self.quarter)
        return x, (self.rows[index - 1] + self.rows[index] - 2 * RADIUS - BRANCH) / 2 + 2

    @cached_property
    def lanes(self) -> dict[Wire, int]:
        """Assign each wire that skips states a lane next to the branches in which it meets no other."""
        taken: dict[Wire, int] = {}
        for wire in sorted(_skips(self.cell), key=lambda wire: (wire.side, wire.state, wire.junction)):
            rivals = {lane for other, lane in taken.items() if other.side == wire.side and other.junction > wire.state}
            taken[wire] = min(set(range(len(rivals) + 1)) - rivals)
        return taken

    def lane(self, wire: Wire) -> float:
        step = self.margin / (1 + max(self.lanes.values()))
        return self.column.centre + wire.side * (2 * self.quarter + step * (self.lanes[wire] + 1))

    @cached_property
    def quarter(self) -> float:
        """Return the distance of the branches from the centre."""
        return (self._inside - 2 * self.margin) / 4

    @cached_property
    def margin(self) -> float:
        """Return the width of all lanes on one side."""
        return min(8.0 * (1 + max(self.lanes.values(), default=-1)), self._inside / 5)

    @property
    def _inside(self) -> float:
        return self.column.box(self.cell.width) - 2 * _EDGE


def words_of(column: Column, junction: Junction, index: int) -> list[str]:
    """Describe a junction in lines that fit next to it."""
    words = column.broken(f"{index}: {describe_branch(junction.left)}")
    if junction.right is not None:
        words += column.broken(f"{junction.combine} {describe_branch(junction.right)}")
    return words


def sides(junction: Junction) -> list[tuple[int, Branch]]:
    """List the branches of a junction with their sides, -1 or 1."""
    return [(-1, junction.left)] if junction.right is None else [(-1, junction.left), (1, junction.right)]


def _skips(cell: Cell) -> list[Wire]:
    junctions = enumerate(cell.junctions, start=1)
    found = [(index, side, branch) for index, junction in junctions for side, branch in sides(junction)]
    return [Wire(branch.input, index, side) for index, side, branch in found if branch.input < index - 1]


def cell_box(column: Column, run: LayerRun, cell: Cell, top: float) -> Drawn:
    plan = CellPlan(column, cell, top)
    bottom = plan.rows[-1] + 14
    wires, shapes, words = [], _dot(plan, 0), [title(column, run, top)]
    ports = [column.port(cell.width, bottom - 12, layer=run.last)]
    for index, junction in enumerate(cell.junctions, start=1):
        wires += _wires(plan, index, junction)
        shapes += _branches(plan, index, junction) + _join(plan, index, junction)
        words += column.words((plan.rows[index - 1] + plan.rows[index]) / 2, words_of(column, junction, index))
        ports += _readers(plan, index, junction)
    between = inner_projection([run])
    if between is not None and run.times > 1:
        words += column.words(bottom - 2, [describe_between(between)])
    box = sheet(column, cell.width, top, bottom - top, run.times)
    return Drawn((*box, *wires, *shapes, *words), bottom + pile_height(run.times), tuple(ports))


def _readers(plan: CellPlan, index: int, junction: Junction) -> list[Port]:
    """List where cross-attention enters a junction, the right branch a little lower to keep the rails apart."""
    return [
        plan.column.port(plan.cell.width, plan.branch(index, side)[1] + BRANCH / 2 + 3 * side, reads=operation.layers)
        for side, operation in ((side, branch.operation) for side, branch in sides(junction))
        if isinstance(operation, CrossAttention)
    ]


def _branches(plan: CellPlan, index: int, junction: Junction) -> list[str]:
    widest = max(branch.width for _, branch in branches(plan.cell))
    elements = []
    for side, branch in sides(junction):
        x, top = plan.branch(index, side)
        room = max(8.0, (2 * plan.quarter - 8) * branch.width / widest)
        elements += tiles(branch.operation, x, top, room, BRANCH)
        if branch.norm:
            elements.append(rect(x - room / 2, top - 6, room, 3, STRIP, rx=1.5, class_="norm"))
    return elements


def _wires(plan: CellPlan, index: int, junction: Junction) -> list[str]:
    """Draw the wires from states into the branches of a junction, and from them into its circle."""
    middle, end = plan.column.centre, plan.state(index)
    data = []
    for side, branch in sides(junction):
        x, top = plan.branch(index, side)
        wire = Wire(branch.input, index, side)
        data.append(_lane_path(plan, wire, x, top) if wire in plan.lanes else _step_path(plan, index, x, top))
        data.append(f"M{point(x, top + BRANCH)}C{point(x, end)} {point(x, end)} {point(middle, end)}")
    return [path(item, stroke_width=1.2) for item in data]


def _step_path(plan: CellPlan, index: int, x: float, top: float) -> str:
    start = plan.state(index - 1)
    return f"M{point(plan.column.centre, start)}C{point(x, start)} {point(x, start)} {point(x, top)}"


def _lane_path(plan: CellPlan, wire: Wire, x: float, top: float) -> str:
    start, lane, turn = plan.state(wire.state), plan.lane(wire), 5 * wire.side
    down = f"H{number(lane - turn)}q{number(turn)},0 {number(turn)},5V{number(top - 15)}"
    back = f"q0,5 {number(-turn)},5H{number(x + turn)}q{number(-turn)},0 {number(-turn)},5V{number(top)}"
    return f"M{point(plan.column.centre, start)}{down}{back}"


def _join(plan: CellPlan, index: int, junction: Junction) -> list[str]:
    x, y = plan.column.centre, plan.state(index)
    if junction.right is None:
        return _dot(plan, index)
    sign = text(x, y + 4.2, _SIGNS[junction.combine], text_anchor="middle", font_weight="bold")
    return [_circle(x, y, RADIUS, SHEET), sign, _number(x + 11, y - 5, index)]


def _dot(plan: CellPlan, index: int) -> list[str]:
    x, y = plan.column.centre, plan.state(index)
    return [_circle(x, y, 4, INK), _number(x + 7, y - 5, index)]


def _number(x: float, y: float, index: int) -> str:
    return text(x, y, str(index), font_size=10, fill=QUIET)


def _circle(x: float, y: float, radius: float, fill: str) -> str:
    return element("circle", cx=x, cy=y, r=radius, fill=fill, stroke=WIRE, class_="state")
