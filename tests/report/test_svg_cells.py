"""Cell plans: wires that skip states never share a lane while they run side by side."""

from itertools import combinations

from hypothesis import given
from tests.report.cards import cells

from formwright.arch.layers import Branch, Cell, Junction
from formwright.arch.ops import GatedLinearUnit, Identity
from formwright.report.svg_cells import CellPlan
from formwright.report.svg_layers import Column

COLUMN = Column(centre=200, room=360, words_at=420, words_room=330, anchor="start", scale=0.5)


def test_wires_to_the_next_junction_need_no_lane() -> None:
    cell = Cell(64, tuple(Junction(Branch(index, GatedLinearUnit(), 64)) for index in range(4)))
    assert CellPlan(COLUMN, cell, 0).lanes == {}


def test_a_wire_that_skips_a_state_gets_a_lane() -> None:
    first = Junction(Branch(0, GatedLinearUnit(), 64))
    second = Junction(Branch(1, GatedLinearUnit(), 64), Branch(0, Identity(), 64))
    (wire,) = CellPlan(COLUMN, Cell(64, (first, second)), 0).lanes
    assert (wire.state, wire.junction, wire.side) == (0, 2, 1)


@given(cells())
def test_lanes_are_shared_only_one_after_the_other(cell: Cell) -> None:
    lanes = CellPlan(COLUMN, cell, 0).lanes
    for one, other in combinations(lanes, 2):
        if one.side == other.side and lanes[one] == lanes[other]:
            assert one.junction <= other.state or other.junction <= one.state


@given(cells())
def test_everything_stands_inside_the_box(cell: Cell) -> None:
    plan = CellPlan(COLUMN, cell, 10)
    half = COLUMN.box(cell.width) / 2
    assert all(abs(plan.lane(wire) - COLUMN.centre) < half for wire in plan.lanes)
    for index in range(1, len(cell.junctions) + 1):
        x, top = plan.branch(index, -1)
        assert COLUMN.centre - half < x <= COLUMN.centre
        assert plan.state(index - 1) < top < plan.state(index)
