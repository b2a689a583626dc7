"""Cells as small graphs: branches in two columns, joined in circles, wires between the states."""

from formwright.arch.check import branches
from formwright.arch.layers import Cell, Junction
from formwright.arch.ops import CrossAttention
from formwright.report.fold import Run, inner_funnel
from formwright.report.svg_canvas import (
    INK,
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
from formwright.report.svg_cell_plan import BRANCH, RADIUS, Plan, Wire, sides, words_of
from formwright.report.svg_column import Column
from formwright.report.svg_layers import pile_height, sheet, tiles, title
from formwright.report.words import describe_between

_SIGNS = {"add": "+", "concatenate": "\N{DOUBLE VERTICAL LINE}", "multiply": "\N{MULTIPLICATION SIGN}"}


def cell_box(column: Column, run: Run, cell: Cell, top: float) -> Drawn:
    """Draw a cell."""
    plan = Plan(column, cell, top)
    bottom = plan.rows[-1] + 14
    wires, shapes, words = [], _dot(plan, 0), [title(column, run, top)]
    ports = [column.port(cell.width, bottom - 12, layer=run.last)]
    for index, junction in enumerate(cell.junctions, start=1):
        wires += _wires(plan, index, junction)
        shapes += _branches(plan, index, junction) + _join(plan, index, junction)
        words += column.words((plan.rows[index - 1] + plan.rows[index]) / 2, words_of(column, junction, index))
        ports += _readers(plan, index, junction)
    between = inner_funnel([run])
    if between is not None and run.times > 1:
        words += column.words(bottom - 2, [describe_between(between)])
    box = sheet(column, cell.width, top, bottom - top, run.times)
    return Drawn((*box, *wires, *shapes, *words), bottom + pile_height(run.times), tuple(ports))


def _readers(plan: Plan, index: int, junction: Junction) -> list[Port]:
    """List where cross-attention enters a junction; that of the right branch a little lower, to be told apart."""
    return [
        plan.column.port(plan.cell.width, plan.branch(index, side)[1] + BRANCH / 2 + 3 * side, reads=operation.layers)
        for side, operation in ((side, branch.operation) for side, branch in sides(junction))
        if isinstance(operation, CrossAttention)
    ]


def _branches(plan: Plan, index: int, junction: Junction) -> list[str]:
    widest = max(branch.width for _, branch in branches(plan.cell))
    elements = []
    for side, branch in sides(junction):
        x, top = plan.branch(index, side)
        room = max(8.0, (2 * plan.quarter - 8) * branch.width / widest)
        elements += tiles(branch.operation, x, top, room, BRANCH)
        if branch.norm:
            elements.append(rect(x - room / 2, top - 6, room, 3, STRIP, rx=1.5, class_="norm"))
    return elements


def _wires(plan: Plan, index: int, junction: Junction) -> list[str]:
    """Draw the wires from the states into the branches of a junction, and from them into its circle."""
    middle, end = plan.column.centre, plan.state(index)
    data = []
    for side, branch in sides(junction):
        x, top = plan.branch(index, side)
        wire = Wire(branch.input, index, side)
        data.append(_lane_path(plan, wire, x, top) if wire in plan.lanes else _step_path(plan, index, x, top))
        data.append(f"M{point(x, top + BRANCH)}C{point(x, end)} {point(x, end)} {point(middle, end)}")
    return [path(item, stroke_width=1.2) for item in data]


def _step_path(plan: Plan, index: int, x: float, top: float) -> str:
    start = plan.state(index - 1)
    return f"M{point(plan.column.centre, start)}C{point(x, start)} {point(x, start)} {point(x, top)}"


def _lane_path(plan: Plan, wire: Wire, x: float, top: float) -> str:
    start, lane, turn = plan.state(wire.state), plan.lane(wire), 5 * wire.side
    down = f"H{number(lane - turn)}q{number(turn)},0 {number(turn)},5V{number(top - 15)}"
    back = f"q0,5 {number(-turn)},5H{number(x + turn)}q{number(-turn)},0 {number(-turn)},5V{number(top)}"
    return f"M{point(plan.column.centre, start)}{down}{back}"


def _join(plan: Plan, index: int, junction: Junction) -> list[str]:
    x, y = plan.column.centre, plan.state(index)
    if junction.right is None:
        return _dot(plan, index)
    sign = text(x, y + 4.2, _SIGNS[junction.combine], text_anchor="middle", font_weight="bold")
    return [_circle(x, y, RADIUS, SHEET), sign, _number(x + 11, y - 5, index)]


def _dot(plan: Plan, index: int) -> list[str]:
    x, y = plan.column.centre, plan.state(index)
    return [_circle(x, y, 4, INK), _number(x + 7, y - 5, index)]


def _number(x: float, y: float, index: int) -> str:
    return text(x, y, str(index), font_size=10, fill=QUIET)


def _circle(x: float, y: float, radius: float, fill: str) -> str:
    return element("circle", cx=x, cy=y, r=radius, fill=fill, stroke=WIRE, class_="state")
