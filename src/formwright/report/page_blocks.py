"""The page of a block-wise compression: heat maps of the blocks, with the chain that any size would get."""

from pathlib import Path
from string import Template

from formwright.core.files import write_whole
from formwright.report.blocks import BlockFacts, page_data
from formwright.report.markup import Markup, join, script_json, tag
from formwright.report.source import asset, script_source
from formwright.report.svg_blocks import draw_grid, legend, loss_scale

_ABOUT = (
    "Every cell is the best candidate of its width (the rows) and of its number of parameters (the columns) that was "
    "left after the last round. Losses are squared distances from what the teacher says at the end of the block, as a "
    "share of its variance. The framed cells are what the size above would choose: the least sum of losses within it."
)


def blocks_html(facts: BlockFacts) -> str:
    """Write the page; the browser runs our script and nothing else, and loads nothing from anywhere."""
    script = f'(() => {{\n"use strict";\n{asset("blocks.js")}\n}})();\n'
    parts = {
        "title": join(f"{facts.teacher} in smaller sizes"),
        "style": f"{asset('page.css')}\n{asset('blocks.css')}",
        "header": _header(facts),
        "tables": _tables(facts),
        "models": _models(facts),
        "data": script_json(page_data(facts)),
        "script": script,
        "scripts": script_source(script),
    }
    return Template(asset("blocks.html")).substitute(parts)


def write_blocks(facts: BlockFacts, path: Path) -> None:
    """Write the page to a file: all of it, or nothing."""
    write_whole(path, blocks_html(facts))


def _header(facts: BlockFacts) -> Markup:
    candidates = sum(map(len, facts.blocks))
    words = (
        f"{facts.teacher} has {facts.params:,} parameters. It taught {len(facts.blocks)} blocks apart from one another "
        f"on {facts.text}; {candidates:,} candidates were left, and any size can be put together from them."
    )
    return tag("header", tag("h1", f"{facts.teacher} in smaller sizes"), tag("p", words, class_="finding"))


def _tables(facts: BlockFacts) -> Markup:
    scale = loss_scale(facts.grids)
    drawn = [
        tag("div", tag("h3", f"Block {number + 1}"), tag("figure", draw_grid(grid, number, scale), tabindex=0))
        for number, grid in enumerate(facts.grids)
    ]
    about = tag("p", _ABOUT, " ", legend(scale), class_="note")
    return join(about, tag("div", *drawn, class_="blocks"))


def _models(facts: BlockFacts) -> Markup:
    if not facts.models:
        return join()
    heads = ("Parameters", "Milliseconds", "as added up", "Distance before", "after it was taught")
    top = tag("tr", tag("th", "Model"), *(tag("th", head, class_="number") for head in heads))
    rows = []
    for one in facts.models:
        cells = (
            f"{one.params:,}",
            f"{one.latency_ms:.2f}",
            f"{one.predicted_ms:.2f}",
            f"{one.before:.4f}",
            f"{one.after:.4f}",
        )
        rows.append(tag("tr", tag("th", one.name, scope="row"), *(tag("td", cell, class_="number") for cell in cells)))
    table = tag("div", tag("table", tag("thead", top), tag("tbody", *rows)), class_="scroll", tabindex=0)
    about = "Distances are from the teacher's last vectors on held-out text, as a share of their variance."
    return tag("section", tag("h2", "Delivered models"), tag("p", about, class_="note"), table, id="models")
