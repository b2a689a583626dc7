"""Cells as SVG graphs: branches in two columns, joined in circles, with wires between the states."""

from dataclasses import dataclass
from functools import cached_property

from formwright.arch.layers import Branch, Cell, Junction
from formwright.report import svg_canvas as svg
from formwright.report.layer_runs import LayerRun, inner_projection
from formwright.report.markup import Markup, number, tag
from formwright.report.svg_canvas import Drawn, Port
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
        lines = [len(words_of(self.column, junction, 1)) for junction in self.cell.junctions]
        heights = [max(_LEAST_ROW, _WORDS_GAP + svg.LINE * count) for count in lines]
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
    wires, shapes, words = [], _state(plan, 0), [title(column, run, top)]
    ports = [column.port(cell.width, bottom - 12, layer=run.last)]
    for index, junction in enumerate(cell.junctions, start=1):
        wires += _wires(plan, index, junction)
        shapes += _branches(plan, index, junction)
        shapes += _state(plan, index, "" if junction.right is None else junction.combine)
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
        plan.column.port(plan.cell.width, plan.branch(index, side)[1] + BRANCH / 2 + 3 * side, reads=reads)
        for side, reads in ((side, branch.operation.memory_layers) for side, branch in sides(junction))
        if reads
    ]


def _branches(plan: CellPlan, index: int, junction: Junction) -> list[Markup]:
    widest = max(branch.width for _, branch in plan.cell.branches)
    elements = []
    for side, branch in sides(junction):
        x, top = plan.branch(index, side)
        room = max(8.0, (2 * plan.quarter - 8) * branch.width / widest)
        elements += tiles(branch.operation, x, top, room, BRANCH)
        if branch.norm:
            elements.append(svg.rect(x - room / 2, top - 6, room, 3, svg.STRIP, rx=1.5, class_="norm"))
    return elements


def _wires(plan: CellPlan, index: int, junction: Junction) -> list[Markup]:
    """Draw the wires from states into the branches of a junction, and from them into its circle."""
    middle, end = plan.column.centre, plan.state(index)
    data = []
    for side, branch in sides(junction):
        x, top = plan.branch(index, side)
        data.append(_wire_path(plan, Wire(branch.input, index, side), x, top))
        turn = svg.point(x, end)
        data.append(f"M{svg.point(x, top + BRANCH)}C{turn} {turn} {svg.point(middle, end)}")
    return [svg.path(item, stroke_width=1.2) for item in data]


def _wire_path(plan: CellPlan, wire: Wire, x: float, top: float) -> str:
    """Lead a wire from its state to a branch, in its lane where it skips states."""
    if wire not in plan.lanes:
        level = plan.state(wire.junction - 1)
        turn = svg.point(x, level)
        return f"M{svg.point(plan.column.centre, level)}C{turn} {turn} {svg.point(x, top)}"
    lane, bend = plan.lane(wire), 5 * wire.side
    down = f"H{number(lane - bend)}q{number(bend)},0 {number(bend)},5V{number(top - 15)}"
    back = f"q0,5 {number(-bend)},5H{number(x + bend)}q{number(-bend)},0 {number(-bend)},5V{number(top)}"
    return f"M{svg.point(plan.column.centre, plan.state(wire.state))}{down}{back}"


def _state(plan: CellPlan, index: int, combine: str = "") -> list[Markup]:
    """Draw a state as a dot, or as a circle with the sign by which two branches are joined."""
    x, y = plan.column.centre, plan.state(index)
    radius, fill, right = (RADIUS, svg.SHEET, 11) if combine else (4, svg.INK, 7)
    circle = tag("circle", cx=x, cy=y, r=radius, fill=fill, stroke=svg.WIRE, class_="state")
    sign = [svg.text(x, y + 4.2, _SIGNS[combine], text_anchor="middle", font_weight="bold")] if combine else []
    return [circle, *sign, svg.text(x + right, y - 5, str(index), font_size=10, fill=svg.QUIET)]
