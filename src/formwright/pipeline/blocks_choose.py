"""The stage that chooses a chain for each size: the best by the sum of block losses, compared with the teacher."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from formwright.arch.card import Card
from formwright.core.errors import IllegalInput
from formwright.core.files import read_json, write_json
from formwright.core.options import Stage, option
from formwright.cost import LATENCY, params
from formwright.pipeline.blocks_source import TEACHER, TIMES, LoadTeacher, MeasureOperations, Source, read_times
from formwright.pipeline.blocks_train import FitBases, TrainBlocks, TrainedBlocks, embedding_losses, read_table
from formwright.pipeline.run import PipelineRun, StageRun
from formwright.search.chain_costs import PARAMS, PartCosts, Size, blocks_of, exceeded, parse_sizes, refuse_sizes
from formwright.space.zoo.chains import Chain, Menu, chain_card, scaled

if TYPE_CHECKING:
    from formwright.nn.latency import Measured
    from formwright.search.block_choice import Assembly, Blocks

CHOICES = "choices.json"
_HELD = 8  # batches of held-out text that whole students are compared on
_TURNS = 3  # each design in every one, so that a busy moment of the machine does not fall on one of them alone
_SIZES = 40  # places of the page's slider, evenly apart on a logarithmic scale


@dataclass(frozen=True)
class ChosenChain:
    """A whole chain: the width of its token table, its blocks, and what is known of it.

    `loss` is the sum of the losses of its parts, `distance` how far the whole is from the teacher on held-out text.
    `measured_ms` is how long the whole takes, where that is limited; `costs` has the sum of its parts.
    """

    table: int
    blocks: tuple[Chain, ...]
    loss: float
    costs: dict[str, float]
    distance: float
    measured_ms: float | None = None

    @classmethod
    def from_json(cls, data: Any) -> "ChosenChain":
        """Read what `asdict` gave."""
        blocks = tuple(Chain(block["width"], tuple(block["operations"])) for block in data["blocks"])
        return cls(data["table"], blocks, data["loss"], data["costs"], data["distance"], data.get("measured_ms"))


@dataclass(frozen=True)
class ChooseChains(Stage):
    """Choose a chain for each size. Trained blocks serve every size: a run may be extended by others later."""

    NAME = "choices"

    source: LoadTeacher
    latency: MeasureOperations
    bases: FitBases
    blocks: TrainBlocks
    sizes: tuple[str, ...] = option((), "maximum size of each model, such as 5M, 8ms or 10M@8ms", extent=True)
    checked: int = option(5, "choices for a size that are put together and compared with the teacher", least=1)

    @property
    def asked(self) -> tuple[Size, ...]:
        return parse_sizes(self.sizes)

    def check(self, run: StageRun) -> None:
        """Refuse sizes that no chain has, or that exceed the teacher's own.

        Where milliseconds are limited, operations are measured for that, before anything is trained.
        """
        source: Source = run.artifact(self.source)
        times = run.artifact(self.latency) if any(LATENCY in size.limits for size in self.asked) else None
        refuse_sizes(self.asked, source.card, source.menu, times)

    def make(self, run: StageRun) -> None:
        from formwright.train.device import threads

        known = self._known(run)
        missing = [size for size in self.asked if size.name not in known]
        if missing:
            trained: TrainedBlocks = run.artifact(self.blocks)
            with threads(1):
                found = {size.name: self.compared(size, trained) for size in missing}
            plain = {name: [asdict(one) for one in compared] for name, compared in found.items()}
            write_json(run.folder / CHOICES, known | plain)

    def reaches(self, run: StageRun) -> bool:
        return {size.name for size in self.asked} <= self._known(run).keys()

    def load(self, run: StageRun) -> dict[str, ChosenChain]:
        read = read_json(run.folder / CHOICES)
        return {size.name: ChosenChain.from_json(read[size.name][0]) for size in self.asked}

    def _known(self, run: StageRun) -> dict[str, Any]:
        """Read what was compared before; nothing where that is missing or damaged."""
        try:
            read = read_json(run.folder / CHOICES)
            return {name: compared for name, compared in read.items() if ChosenChain.from_json(compared[0])}
        except (IllegalInput, AttributeError, IndexError, KeyError, TypeError):
            return {}

    def compared(self, size: Size, trained: TrainedBlocks) -> list[ChosenChain]:
        """Compare the best few with the teacher: those within the limits as measured first, and the nearest of them."""
        found = [chosen_chain(one, trained) for one in trained.choices.best(size.limits, self.checked)]
        measured = [dict[str, float]() for _ in found]
        if LATENCY in size.limits:
            cards = [chain_card(trained.source.menu, one.table, one.blocks) for one in found]
            measured = [{LATENCY: time} for time in least_of(trained.source.timer, cards)]
            found = [replace(one, measured_ms=own[LATENCY]) for one, own in zip(found, measured, strict=True)]
        ranks = [(bool(exceeded(size, own)), one.distance) for one, own in zip(found, measured, strict=True)]
        return [found[place] for place in sorted(range(len(found)), key=ranks.__getitem__)]


def chosen_chain(assembly: "Assembly", trained: TrainedBlocks) -> ChosenChain:
    """Put an assembly together and compare it with the teacher."""
    table = trained.source.menu.embeddings[assembly.chosen[0]]
    rows = zip(trained.tables, assembly.chosen[1:], strict=True)
    blocks = tuple(chains[place][0] for chains, place in rows)
    distance = trained.student(table, blocks).distance(trained.source.held_batches(_HELD))
    return ChosenChain(table, blocks, assembly.loss, dict(assembly.costs), distance)


def least_of(measured: "Measured", cards: Sequence[Card]) -> list[float]:
    """Measure designs in turns, as the times of operations are measured, and give the least time of each."""
    turns = [[measured(card) for card in cards] for _ in range(_TURNS)]
    return [min(times) for times in zip(*turns, strict=True)]


# --- what the page shows ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ChainFacts:
    """One chain of a block: width, operations, loss and costs."""

    width: int
    operations: tuple[str, ...]
    loss: float
    params: int
    latency_ms: float


@dataclass(frozen=True)
class SizeFacts:
    """The best choice within `limit` parameters: the width of the token table, and a chain of each block."""

    limit: int
    table: int
    chosen: tuple[int, ...]
    params: int
    latency_ms: float
    loss: float


@dataclass(frozen=True)
class StudentFacts:
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
    blocks: tuple[tuple[ChainFacts, ...], ...]
    options: tuple[SizeFacts, ...]
    models: tuple[StudentFacts, ...] = ()


def block_facts(choices: ChooseChains, run: PipelineRun) -> BlockFacts:
    """Gather what the page shows of the blocks from the files of a run, without torch."""
    source, latency, bases, blocks = (
        run.stage(stage).folder for stage in (choices.source, choices.latency, choices.bases, choices.blocks)
    )
    teacher = read_json(source / TEACHER)
    card = Card.from_json(teacher["card"])
    menu = scaled(card)
    costs = PartCosts(menu, read_times(latency / TIMES, menu))
    tables = [read_table(blocks / str(block)) for block in range(menu.blocks)]
    entries = tuple(
        tuple(
            ChainFacts(chain.width, chain.operations, loss, int(own[PARAMS]), own[LATENCY])
            for chain, loss in table
            for own in [costs.chain(chain)]
        )
        for table in tables
    )
    options = _best_by_size(blocks_of(costs, embedding_losses(bases), tables), menu, costs.extremes(PARAMS))
    text = teacher["text"] or "the prose of Python's reference"
    return BlockFacts(teacher["name"], params(card), text, entries, tuple(options))


def _best_by_size(blocks: "Blocks", menu: Menu, ends: tuple[float, float]) -> list[SizeFacts]:
    """Choose the best for sizes between two ends; those that choose the same as a smaller one are left out.

    So are sizes that nothing keeps any more: the smallest chains may have been dropped because their loss was NaN.
    """
    found: list[SizeFacts] = []
    for limit in np.ceil(np.geomspace(*ends, _SIZES)).tolist():
        try:
            best = blocks.best({PARAMS: limit})[0]
        except IllegalInput:
            continue
        size, time = int(best.costs[PARAMS]), best.costs[LATENCY]
        if not found or found[-1].params != size or found[-1].chosen != best.chosen[1:]:
            table = menu.embeddings[best.chosen[0]]
            found.append(SizeFacts(int(limit), table, best.chosen[1:], size, time, best.loss))
    return found
