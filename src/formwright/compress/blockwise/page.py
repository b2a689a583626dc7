"""What the page of a block-wise compression is made of: the tables, and the best chain for sizes of the whole range."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from formwright.compress.blockwise.choices import Selection
from formwright.compress.blockwise.costs import blocks_of
from formwright.compress.blockwise.sizes import LATENCY, PARAMS
from formwright.core.errors import IllegalInput
from formwright.cost import params
from formwright.report.blocks import BlockFacts, Entry, Model, Option
from formwright.report.page_blocks import write_blocks
from formwright.search.block_choice import Blocks
from formwright.space.zoo.chains import Menu

_SIZES = 40  # places of the slider, evenly apart on a logarithmic scale


def write_page(selection: Selection, models: Sequence[Mapping[str, Any]], path: Path) -> Path:
    """Write the page, and give where it is."""
    write_blocks(page_facts(selection, models), path)
    return path


def page_facts(selection: Selection, models: Sequence[Mapping[str, Any]]) -> BlockFacts:
    """Gather what the page shows."""
    started, tables = selection.started, selection.tables()
    blocks = blocks_of(selection.costs, selection.prepared.losses, tables)
    entries = tuple(
        tuple(
            Entry(chain.width, chain.operations, loss, int(costs[PARAMS]), costs[LATENCY])
            for chain, loss in table
            for costs in [selection.costs.chain(chain)]
        )
        for table in tables
    )
    return BlockFacts(
        teacher=started.name,
        params=params(started.imported.card),
        text=Path(started.job.text).name or "the prose of Python's reference",
        blocks=entries,
        options=tuple(options(blocks, started.menu, selection.costs.extremes(PARAMS))),
        models=tuple(map(_model, models)),
    )


def options(blocks: Blocks, menu: Menu, ends: tuple[float, float]) -> list[Option]:
    """Choose the best for sizes between two ends; those that choose the same as a smaller one are left out.

    So are sizes that nothing keeps any more: the smallest chains may have been dropped, their loss being no number.
    """
    found: list[Option] = []
    for limit in np.ceil(np.geomspace(*ends, _SIZES)).tolist():
        try:
            best = blocks.best({PARAMS: limit})[0]
        except IllegalInput:
            continue
        size, time = int(best.costs[PARAMS]), best.costs[LATENCY]
        if not found or found[-1].params != size or found[-1].chosen != best.chosen[1:]:
            table = menu.embeddings[best.chosen[0]]
            found.append(Option(int(limit), table, best.chosen[1:], size, time, best.loss))
    return found


def _model(model: Mapping[str, Any]) -> Model:
    chosen = model["chosen"]
    predicted = chosen["costs"][LATENCY]
    return Model(model["name"], model["params"], model["latency_ms"], predicted, chosen["distance"], model["distance"])
