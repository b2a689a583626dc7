import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.report.blocks import FACTS, FIRST
from tests.report.chromium import Browser

from formwright.pipeline.block_facts import BlockFacts
from formwright.report.page import run_html
from formwright.report.page_blocks import COLUMNS, Grid, _legend, block_data, draw_grid, grids_of, loss_scale
from formwright.report.panels import Contributions
from formwright.report.run_facts import RunFacts

FRAMED = (
    "return [...document.querySelectorAll('.cell.chosen')].map((cell) => cell.dataset.block + ':' + cell.dataset.cell)"
)
CUT_OFF = "return [...document.querySelectorAll('figure')].filter((one) => one.scrollWidth > one.clientWidth)"
MOVE = """
const slider = document.getElementById("size");
slider.value = arguments[0];
slider.dispatchEvent(new Event("input"));
"""


def test_every_candidate_has_a_cell() -> None:
    grid = Grid.of(FIRST)
    assert grid.widths == (96, 384)
    assert [grid.cell(entry) for entry in FIRST] == [(0, 0), (0, 0), (1, COLUMNS - 1), (1, COLUMNS - 1)]


def test_a_cell_shows_its_best() -> None:
    assert Grid.of(FIRST).best == {(0, 0): FIRST[1], (1, COLUMNS - 1): FIRST[2]}


def test_a_table_of_one_candidate_has_one_cell() -> None:
    assert Grid.of(FIRST[:1]).best == {(0, 0): FIRST[0]}


def test_options_name_the_cells_that_they_choose() -> None:
    options = block_data(FACTS)["options"]
    assert [option["limit"] for option in options] == [2_000_000, 6_000_000, 15_000_000]
    last = options[-1]["blocks"]
    assert [block["cell"] for block in last] == [f"1-{COLUMNS - 1}", f"1-{COLUMNS - 1}"]
    assert last[0]["operations"] == ["separable-3", "feed-forward", "attention"]


def test_lower_losses_are_darker() -> None:
    drawn = draw_grid(Grid.of(FIRST), 0, loss_scale(grids_of(FACTS)))
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
    assert loss_scale(grids_of(FACTS)) == (0.1, 0.4)  # 0.5 has a better neighbour in its cell
    assert "0.10" in _legend((0.1, 0.4))
    assert 'fill="#33558B"' in draw_grid(Grid.of(FIRST[:1]), 0, (0.5, 0.5))


def page_of(facts: BlockFacts) -> str:
    panels = Contributions({"block-sizes": "students", "block-models": "students"})
    return run_html(RunFacts("run <1>", {"recipe": "nas-bert"}), panels, lambda stage: facts)


def test_the_page_is_whole_and_escaped() -> None:
    page = page_of(FACTS)
    assert "MiniLM &lt;6&gt; has 22,700,000 parameters" in page
    assert "run &lt;1&gt;" in page
    assert "<6>" not in page
    assert "$" not in page.partition("<body>")[2].partition("<script>")[0]
    assert "4,900,000" in page
    assert "unsafe-eval" not in page
    assert 'id="block-models"' not in page_of(replace(FACTS, models=()))


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Browser]:
    made = Browser(tmp_path / "profile")
    yield made
    made.driver.quit()


@pytest.mark.browser
def test_the_slider_frames_what_a_size_chooses(browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(page_of(FACTS), encoding="utf-8")
    browser.open(tmp_path / "page.html")
    assert browser.words("#limit") == "6,000,000"
    assert browser.run(FRAMED) == ["0:0-0", "1:1-11"]
    browser.run(MOVE, 2)
    assert browser.words("#outcome") == "14,000,000 parameters, about 7 ms, sum of losses 0.5000"
    assert browser.run(FRAMED) == ["0:1-11", "1:1-11"]
    assert [part.text for part in browser.all("#chain li")][1:] == [
        "block 1, 384 wide\nconvolution 3 feed-forward attention",
        "block 2, 384 wide\nattention",
    ]
    browser.run(MOVE, 0)
    assert browser.words("#limit") == "2,000,000"
    for width in (1040, 1100, 1280):
        browser.resize(width, 800)
        assert browser.run(CUT_OFF) == []
    browser.resize(400, 800)
    assert browser.run("return document.documentElement.scrollWidth") <= 400
    assert browser.complaints() == []
