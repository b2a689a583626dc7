"""What is chosen for each size: the best by the sum of block losses, put together and compared with the teacher."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from formwright.compress.blockwise.costs import PartCosts, blocks_of
from formwright.compress.blockwise.folders import Folders
from formwright.compress.blockwise.job import Started
from formwright.compress.blockwise.plan import Plan
from formwright.compress.blockwise.prepared import Prepared, read_tensors
from formwright.compress.blockwise.rounds import BlockTraining, read_rows, restored
from formwright.compress.blockwise.sizes import Size
from formwright.compress.folders import read_json, write_json
from formwright.nn.settings import Settings
from formwright.search.block_choice import Assembly, Blocks
from formwright.space.zoo.chains import Chain
from formwright.supernet.assembled import Taught, assembled
from formwright.supernet.blockwise import BlockNetwork, chain_weights
from formwright.train.device import choose_device, threads

_HELD = 8  # batches of held-out text that whole students are compared on


@dataclass(frozen=True)
class Choice:
    """A whole chain: the width of its token table, its blocks, and what is known of it.

    `loss` is the sum of the losses of its parts, `distance` how far the whole is from the teacher on held-out text.
    """

    table: int
    blocks: tuple[Chain, ...]
    loss: float
    costs: dict[str, float]
    distance: float

    @classmethod
    def from_json(cls, data: Any) -> "Choice":
        """Read what `asdict` gave."""
        blocks = tuple(Chain(block["width"], tuple(block["operations"])) for block in data["blocks"])
        return cls(data["table"], blocks, data["loss"], data["costs"], data["distance"])


@dataclass(frozen=True)
class Selection:
    """The trained blocks of a compression, and everything that is needed to put whole students together."""

    started: Started
    plan: Plan
    costs: PartCosts
    prepared: Prepared
    folders: Folders

    def choose(self) -> dict[str, Choice]:
        """Choose the best for each size and write all that were compared, or read what was chosen before."""
        if not self.folders.choices.is_file():
            with threads(1):
                networks, tables = self.networks(), self.tables()
                blocks = blocks_of(self.costs, self.prepared.losses, tables)
                found = {size.name: self._checked(size, blocks, tables, networks) for size in self.started.sizes}
            plain = {name: [asdict(one) for one in compared] for name, compared in found.items()}
            write_json(self.folders.choices, plain)
        read = read_json(self.folders.choices)
        return {name: Choice.from_json(compared[0]) for name, compared in read.items()}

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

    def _checked(
        self,
        size: Size,
        blocks: Blocks,
        tables: Sequence[Sequence[tuple[Chain, float]]],
        networks: Sequence[BlockNetwork],
    ) -> list[Choice]:
        """Compare the best few with the teacher, and give them, the nearest first."""
        found = [
            self.choice(one, tables, networks) for one in blocks.best(size.limits, self.started.job.method.checked)
        ]
        return sorted(found, key=lambda one: one.distance)

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
