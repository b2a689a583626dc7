import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.report.chromium import Browser

from formwright.pipeline.blocks_choose import BlockFacts, ChainFacts, SizeFacts, StudentFacts
from formwright.report.page import page_html
from formwright.report.page_blocks import COLUMNS, Grid, _legend, block_data, draw_grid, loss_scale
from formwright.report.panels import Contributions, RunFacts

FIRST = (
    ChainFacts(96, ("attention",), 0.5, 37_000, 0.4),
    ChainFacts(96, ("attention", "feed-forward"), 0.3, 111_000, 0.9),
    ChainFacts(384, ("separable-3", "feed-forward", "attention"), 0.1, 1_900_000, 4.0),
    ChainFacts(384, ("feed-forward", "feed-forward", "attention"), 0.2, 1_900_100, 4.0),
)
SECOND = (ChainFacts(192, ("separable-7",), 0.4, 75_000, 0.5), ChainFacts(384, ("attention",), 0.25, 590_000, 1.5))
FACTS = BlockFacts(
    teacher="MiniLM <6>",
    params=22_700_000,
    text="wikitext",
    blocks=(FIRST, SECOND),
    options=(
        SizeFacts(2_000_000, 48, (0, 0), 1_990_000, 1.0, 1.2),
        SizeFacts(6_000_000, 96, (1, 1), 5_900_000, 3.0, 0.9),
        SizeFacts(15_000_000, 288, (2, 1), 14_000_000, 7.0, 0.5),
    ),
    models=(StudentFacts("5m", 4_900_000, 3.1, 2.9, 0.6, 0.3),),
)

FRAMED = (
    "return [...document.querySelectorAll('.cell.chosen')].map((cell) => cell.dataset.block + ':' + cell.dataset.cell)"
)
CUT_OFF = "return [...document.querySelectorAll('figure')].filter((one) => one.scrollWidth > one.clientWidth)"
MOVE = """
const slider = document.getElementById("size");
slider.value = arguments[0];
slider.dispatchEvent(new Event("input"));
"""


def test_every_candidate_has_a_cell_that_shows_its_best() -> None:
    grid = Grid.of(FIRST)
    assert grid.widths == (96, 384)
    assert [grid.cell(entry) for entry in FIRST] == [(0, 0), (0, 0), (1, COLUMNS - 1), (1, COLUMNS - 1)]
    assert Grid.of(FIRST).best == {(0, 0): FIRST[1], (1, COLUMNS - 1): FIRST[2]}
    assert Grid.of(FIRST[:1]).best == {(0, 0): FIRST[0]}


def test_options_name_the_cells_that_they_choose() -> None:
    options = block_data(FACTS)["options"]
    assert [option["limit"] for option in options] == [2_000_000, 6_000_000, 15_000_000]
    last = options[-1]["blocks"]
    assert [block["cell"] for block in last] == [f"1-{COLUMNS - 1}", f"1-{COLUMNS - 1}"]
    assert last[0]["operations"] == ["separable-3", "feed-forward", "attention"]


def test_cells_can_be_read_and_are_darker_where_the_loss_is_lower() -> None:
    drawn = draw_grid(Grid.of(FIRST), 0, loss_scale(list(map(Grid.of, FACTS.blocks))))
    fills = re.findall(r'fill="(#[0-9A-F]{6})"/>', drawn)
    assert len(fills) == 2
    assert int(fills[0][1:3], 16) > int(fills[1][1:3], 16)
    drawn = draw_grid(Grid.of(FIRST), 3, (0.1, 0.3))
    assert 'data-block="3" data-cell="0-0"' in drawn
    assert "width 96, attention, feed-forward: loss 0.3000, 111,000 parameters" in drawn
    assert "1.9M" in drawn
    assert "37,000" in drawn
    assert loss_scale(list(map(Grid.of, FACTS.blocks))) == (0.1, 0.4)  # 0.5 has a better neighbour in its cell
    assert "0.10" in _legend((0.1, 0.4))
    assert 'fill="#33558B"' in draw_grid(Grid.of(FIRST[:1]), 0, (0.5, 0.5))


def page_of(facts: BlockFacts) -> str:
    panels = Contributions({"block-sizes": "students", "block-models": "students"})
    return page_html(RunFacts("run <1>", {"recipe": "nas-bert"}), [], panels, lambda stage: facts)


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
