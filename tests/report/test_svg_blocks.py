"""Heat maps of blocks."""

import re

from tests.report.blocks import FACTS, FIRST

from formwright.report.blocks import Grid
from formwright.report.svg_blocks import draw_grid, legend, loss_scale


def test_lower_losses_are_darker() -> None:
    drawn = draw_grid(Grid.of(FIRST), 0, loss_scale(FACTS.grids))
    fills = re.findall(r'fill="(#[0-9A-F]{6})"></rect>', drawn)
    assert len(fills) == 2
    assert int(fills[0][1:3], 16) > int(fills[1][1:3], 16)


def test_cells_can_be_found_and_read() -> None:
    drawn = draw_grid(Grid.of(FIRST), 3, (0.1, 0.3))
    assert 'data-block="3" data-cell="0-0"' in drawn
    assert "width 96, attention, feed-forward: loss 0.3000, 111,000 parameters" in drawn
    assert "1.9M" in drawn
    assert "37,000" in drawn


def test_the_scale_is_that_of_what_is_shown() -> None:
    assert loss_scale(FACTS.grids) == (0.1, 0.4)  # 0.5 has a better neighbour in its cell
    assert "0.10" in legend((0.1, 0.4))
    assert 'fill="#33558B"' in draw_grid(Grid.of(FIRST[:1]), 0, (0.5, 0.5))
