"""The page of a block-wise compression: whole, escaped, and alive in a browser."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.report.blocks import FACTS
from tests.report.chromium import Browser

from formwright.report.page_blocks import blocks_html, write_blocks

FRAMED = (
    "return [...document.querySelectorAll('.cell.chosen')].map((cell) => cell.dataset.block + ':' + cell.dataset.cell)"
)
CUT_OFF = "return [...document.querySelectorAll('figure')].filter((one) => one.scrollWidth > one.clientWidth)"
MOVE = """
const slider = document.getElementById("size");
slider.value = arguments[0];
slider.dispatchEvent(new Event("input"));
"""


def test_the_page_is_whole_and_escaped() -> None:
    page = blocks_html(FACTS)
    assert "MiniLM &lt;6&gt; in smaller sizes" in page
    assert "MiniLM <6>" not in page
    assert "$" not in page.partition("<body>")[2].partition("<script>")[0]
    assert "4,900,000" in page
    assert "unsafe-eval" not in page


def test_without_models_there_is_no_table_of_them(tmp_path: Path) -> None:
    write_blocks(replace(FACTS, models=()), tmp_path / "page.html")
    assert "Delivered models" not in (tmp_path / "page.html").read_text(encoding="utf-8")


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Browser]:
    made = Browser(tmp_path / "profile")
    yield made
    made.driver.quit()


@pytest.mark.browser
def test_the_slider_frames_what_a_size_chooses(browser: Browser, tmp_path: Path) -> None:
    write_blocks(FACTS, tmp_path / "page.html")
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
