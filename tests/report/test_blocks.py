"""The tables of blocks in cells, and what the script is told."""

from tests.report.blocks import FACTS, FIRST

from formwright.report.blocks import COLUMNS, Grid, page_data


def test_every_candidate_has_a_cell() -> None:
    grid = Grid.of(FIRST)
    assert grid.widths == (96, 384)
    assert [grid.cell(entry) for entry in FIRST] == [(0, 0), (0, 0), (1, COLUMNS - 1), (1, COLUMNS - 1)]


def test_a_cell_shows_its_best() -> None:
    assert Grid.of(FIRST).best == {(0, 0): FIRST[1], (1, COLUMNS - 1): FIRST[2]}


def test_a_table_of_one_candidate_has_one_cell() -> None:
    assert Grid.of(FIRST[:1]).best == {(0, 0): FIRST[0]}


def test_options_name_the_cells_that_they_choose() -> None:
    options = page_data(FACTS)["options"]
    assert [option["limit"] for option in options] == [2_000_000, 6_000_000, 15_000_000]
    last = options[-1]["blocks"]
    assert [block["cell"] for block in last] == [f"1-{COLUMNS - 1}", f"1-{COLUMNS - 1}"]
    assert last[0]["operations"] == ["separable-3", "feed-forward", "attention"]
