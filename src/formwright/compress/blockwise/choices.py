"""What is chosen for each size: the best by the sum of block losses, put together and compared with the teacher."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from formwright.arch.card import Card
from formwright.compress.blockwise.costs import PartCosts, blocks_of
from formwright.compress.blockwise.folders import Folders
from formwright.compress.blockwise.job import Started
from formwright.compress.blockwise.plan import Plan
from formwright.compress.blockwise.prepared import Prepared, read_tensors
from formwright.compress.blockwise.rounds import BlockTraining, restored
from formwright.compress.blockwise.rows import read_rows
from formwright.compress.blockwise.sizes import LATENCY, Size, exceeded
from formwright.compress.folders import read_json, write_json
from formwright.core.errors import IllegalInput
from formwright.nn.latency_table import Measured
from formwright.nn.settings import Settings
from formwright.search.block_choice import Assembly, Blocks
from formwright.space.zoo.chains import Chain, chain_card
from formwright.supernet.assembled import Taught, assembled
from formwright.supernet.blockwise import BlockNetwork, chain_weights
from formwright.train.device import choose_device, threads

_HELD = 8  # batches of held-out text that whole students are compared on
_TURNS = 3  # each design in every one, so that a busy moment of the machine does not fall on one of them alone


@dataclass(frozen=True)
class Choice:
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
    def from_json(cls, data: Any) -> "Choice":
        """Read what `asdict` gave."""
        blocks = tuple(Chain(block["width"], tuple(block["operations"])) for block in data["blocks"])
        return cls(data["table"], blocks, data["loss"], data["costs"], data["distance"], data.get("measured_ms"))


@dataclass(frozen=True)
class Selection:
    """The trained blocks of a compression, and everything that is needed to put whole students together."""

    started: Started
    plan: Plan
    costs: PartCosts
    prepared: Prepared
    folders: Folders

    def choose(self, measured: Measured) -> dict[str, Choice]:
        """Choose the best for each size and write all that were compared; what was chosen before stays.

        Where milliseconds are limited, the few that are compared are measured too, and those within come first.
        """
        known = self._known()
        missing = [size for size in self.started.sizes if size.name not in known]
        if missing:
            with threads(1):
                networks, tables = self.networks(), self.tables()
                blocks = blocks_of(self.costs, self.prepared.losses, tables)
                found = {size.name: self.compared(size, blocks, tables, networks, measured) for size in missing}
            plain = {name: [asdict(one) for one in compared] for name, compared in found.items()}
            write_json(self.folders.choices, known | plain)
        return self.chosen()

    def chosen(self) -> dict[str, Choice]:
        """Read what was chosen for the sizes of this job."""
        read = read_json(self.folders.choices)
        return {size.name: Choice.from_json(read[size.name][0]) for size in self.started.sizes}

    def _known(self) -> dict[str, Any]:
        """Read what was compared before; nothing where that is missing or damaged."""
        try:
            read = read_json(self.folders.choices)
            return {name: compared for name, compared in read.items() if Choice.from_json(compared[0])}
        except (IllegalInput, AttributeError, IndexError, KeyError, TypeError):
            return {}

    def training(self, block: int) -> BlockTraining:
        """Give the training of a block."""
        return BlockTraining(self.started, self.plan, self.costs, self.prepared.bases, self.folders, block)

    def tables(self) -> list[list[tuple[Chain, float]]]:
        """Read the chains of each block that were left, with their losses."""
        paths = [self.folders.table(block) for block in range(self.started.menu.blocks)]
        return [[(chain, row["loss"]) for chain, row in read_rows(path)] for path in paths]

    def networks(self) -> list[BlockNetwork]:
        """Read the weights of all blocks."""
        tables = self.tables()
        return [
            restored(self.training(block), read_tensors(self.folders.weights(block)), [one for one, _ in table])
            for block, table in enumerate(tables)
        ]

    def student(self, table: int, blocks: Sequence[Chain], networks: Sequence[BlockNetwork]) -> Taught:
        """Put a whole student together, ready to be compared with the teacher, or taught on."""
        layers = [chain_weights(network, block) for network, block in zip(networks, blocks, strict=True)]
        embedding = self.prepared.embeddings[table].weights
        settings = Settings(dropout=0.0)
        model = assembled(self.started.menu, blocks, embedding, layers, self.prepared.bases, settings)
        model.to(choose_device(self.started.job.device))
        return Taught(model, blocks, self.started.teacher, self.started.ends, self.prepared.bases)

    def compared(
        self,
        size: Size,
        blocks: Blocks,
        tables: Sequence[Sequence[tuple[Chain, float]]],
        networks: Sequence[BlockNetwork],
        measured: Measured,
    ) -> list[Choice]:
        """Compare the best few with the teacher: those within the limits as measured first, and the nearest of them."""
        few = blocks.best(size.limits, self.started.job.method.checked)
        found = [self.choice(one, tables, networks) for one in few]
        if LATENCY in size.limits:
            times = least_of(measured, [chain_card(self.started.menu, one.table, one.blocks) for one in found])
            found = [replace(one, measured_ms=time) for one, time in zip(found, times, strict=True)]
        return sorted(found, key=lambda one: (bool(exceeded(size, _measured(one))), one.distance))

    def choice(
        self,
        assembly: Assembly,
        tables: Sequence[Sequence[tuple[Chain, float]]],
        networks: Sequence[BlockNetwork],
    ) -> Choice:
        """Put an assembly together and compare it with the teacher."""
        table = self.started.menu.embeddings[assembly.chosen[0]]
        blocks = tuple(rows[place][0] for rows, place in zip(tables, assembly.chosen[1:], strict=True))
        distance = self.student(table, blocks, networks).distance(self.started.held_batches(_HELD))
        return Choice(table, blocks, assembly.loss, dict(assembly.costs), distance)


def least_of(measured: Measured, cards: Sequence[Card]) -> list[float]:
    """Measure designs in turns, as the times of operations are measured, and give the least time of each."""
    turns = [[measured(card) for card in cards] for _ in range(_TURNS)]
    return [min(times) for times in zip(*turns, strict=True)]


def _measured(choice: Choice) -> dict[str, float]:
    return {} if choice.measured_ms is None else {LATENCY: choice.measured_ms}
