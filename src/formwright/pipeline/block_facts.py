"""What the page of a block-wise run shows: the candidates of each block, and the best chain for every size."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from formwright.arch.card import Card
from formwright.core.errors import IllegalInput
from formwright.core.files import read_json
from formwright.cost import params
from formwright.pipeline.run import PipelineRun
from formwright.search.block_choice import Blocks
from formwright.search.chain_costs import PartCosts, blocks_of
from formwright.search.model_sizes import LATENCY, PARAMS
from formwright.space.zoo.chains import Menu, scaled

if TYPE_CHECKING:
    from formwright.pipeline.blocks_students import TeachStudents


@dataclass(frozen=True)
class BlockCandidate:
    """One candidate of a block: width, operations, loss and costs."""

    width: int
    operations: tuple[str, ...]
    loss: float
    params: int
    latency_ms: float


@dataclass(frozen=True)
class Option:
    """The best choice within `limit` parameters: the width of the token table, and a candidate of each block."""

    limit: int
    table: int
    chosen: tuple[int, ...]
    params: int
    latency_ms: float
    loss: float


@dataclass(frozen=True)
class Model:
    """A delivered model; `before` and `after` are its distances from the teacher before and after distillation."""

    name: str
    params: int
    latency_ms: float
    predicted_ms: float
    before: float
    after: float


@dataclass(frozen=True)
class BlockFacts:
    """Everything that the page shows; `options` are sorted by size."""

    teacher: str
    params: int
    text: str
    blocks: tuple[tuple[BlockCandidate, ...], ...]
    options: tuple[Option, ...]
    models: tuple[Model, ...] = field(default=())


_SIZES = 40  # places of the slider, evenly apart on a logarithmic scale


def page_facts(run: PipelineRun, students: "TeachStudents") -> BlockFacts:
    """Gather what the page shows from the files of the run."""
    from formwright.pipeline.blocks_bases import TIMES, embedding_losses, read_times
    from formwright.pipeline.blocks_source import TEACHER
    from formwright.pipeline.blocks_students import delivered
    from formwright.pipeline.blocks_train import read_table

    choices = students.choices
    folders = {stage.NAME: run.stage(stage).folder for stage in (students.source, choices.latency, choices.bases)}
    teacher = read_json(folders[students.source.NAME] / TEACHER)
    card = Card.from_json(teacher["card"])
    menu = scaled(card)
    costs = PartCosts(menu, read_times(folders[choices.latency.NAME] / TIMES, menu))
    tables = [read_table(run.stage(choices.blocks).folder / str(block)) for block in range(menu.blocks)]
    blocks = blocks_of(costs, embedding_losses(folders[choices.bases.NAME]), tables)
    entries = tuple(
        tuple(
            BlockCandidate(chain.width, chain.operations, loss, int(own[PARAMS]), own[LATENCY])
            for chain, loss in table
            for own in [costs.chain(chain)]
        )
        for table in tables
    )
    models = [model for model in delivered(run.stage(students)) if LATENCY in model]
    return BlockFacts(
        teacher=teacher["name"],
        params=params(card),
        text=teacher["text"] or "the prose of Python's reference",
        blocks=entries,
        options=tuple(options(blocks, menu, costs.extremes(PARAMS))),
        models=tuple(map(_model, models)),
    )


def options(blocks: Blocks, menu: Menu, ends: tuple[float, float]) -> list[Option]:
    """Choose the best for sizes between two ends; those that choose the same as a smaller one are left out.

    So are sizes that nothing keeps any more: the smallest chains may have been dropped because their loss was NaN.
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
