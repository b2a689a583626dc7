"""The stage that trains the blocks of a teacher, each apart from the others."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from formwright.core.checks import natural
from formwright.core.errors import IllegalInput
from formwright.core.files import read_json, write_json
from formwright.core.options import Stage, option
from formwright.pipeline.blocks_bases import FitBases, MeasureOperations, read_tensors
from formwright.pipeline.blocks_source import LoadTeacher, Source
from formwright.pipeline.plan import Amount, Planned
from formwright.pipeline.run import StageRun
from formwright.pipeline.units import Unit, steps_amount, train_units, turns
from formwright.search.chain_costs import PartCosts, shortest_stay
from formwright.supernet.chain_rows import read_rows

if TYPE_CHECKING:
    from formwright.space.zoo.chains import Chain
    from formwright.supernet.bases import Basis
    from formwright.supernet.block_rounds import BlockRounds
    from formwright.supernet.blockwise import BlockNetwork

Table = list[tuple["Chain", float]]
_STEPS = "steps.json"  # with how many steps of a round the blocks were begun


@dataclass(frozen=True)
class TrainBlocks(Stage, Planned):
    """Train the chains of each block in one set of weights, and drop the worse half of alike ones round by round."""

    NAME = "blocks"

    source: LoadTeacher
    latency: MeasureOperations
    bases: FitBases
    steps: int = option(200, "training steps between two rounds", least=1)
    rounds: int = option(4, "rounds that each drop half of the chains", least=1)
    candidates: int = option(4000, "maximum number of chains that a block begins with", least=1)
    bins: int = option(10, "bins along each cost; the worse half of every bin is dropped", least=1)
    least: int = option(10, "chains of a bin that are never dropped", least=1)
    paths: int = option(4, "chains that are drawn in a step", least=1)
    learning_rate: float = option(3e-3, "peak learning rate")

    def make(self, run: StageRun) -> None:
        from formwright.supernet.block_rounds import is_trained

        stage = self._as_begun(run)
        blocks = range(run.artifact(self.source).menu.blocks)
        left = [block for block in blocks if not is_trained(_folder(run, block))]
        units = [Unit(f"block-{block}", stage.all_steps, partial(stage.training, run, block)) for block in left]
        train_units(run, "blocks", units)

    def _as_begun(self, run: StageRun) -> "TrainBlocks":
        try:
            return replace(self, steps=natural("steps", read_json(run.folder / _STEPS)))
        except IllegalInput:
            write_json(run.folder / _STEPS, self.steps)
            return self

    def load(self, run: StageRun) -> "TrainedBlocks":
        source: Source = run.artifact(self.source)
        folders = [_folder(run, block) for block in range(source.menu.blocks)]
        return TrainedBlocks(
            self, source, run.artifact(self.bases).bases, [read_table(one) for one in folders], folders
        )

    @property
    def all_steps(self) -> int:
        """Count the steps of all rounds, and those of the chains that are left."""
        return (self.rounds + 1) * self.steps

    def training(self, run: StageRun, block: int) -> "BlockRounds":
        """Give the training of a block, with everything that it needs."""
        from formwright.supernet.block_rounds import BlockRounds
        from formwright.train.hyperparameters import Hyperparameters

        source: Source = run.artifact(self.source)
        seed, costs = source.seed("block", block), PartCosts(source.menu, run.artifact(self.latency))
        return BlockRounds(
            network=partial(self.network, source, run.artifact(self.bases).bases, block),
            recipe=Hyperparameters(self.all_steps, source.stage.batch, self.learning_rate, decay="cosine", seed=seed),
            stream=source.stream(seed),
            held=source.held_batches,
            keep=partial(shortest_stay, costs, self.bins, self.least),
            rounds=self.rounds,
            folder=_folder(run, block),
        )

    def network(self, source: Source, bases: "Sequence[Basis]", block: int) -> "BlockNetwork":
        from formwright.space.zoo.chains import chains
        from formwright.supernet.block_rounds import begun_with
        from formwright.supernet.blockwise import BlockNetwork, Lesson

        ends, seed = (source.ends[block], source.ends[block + 1]), source.seed("block", block)
        lesson = Lesson(source.teacher, ends, (bases[block], bases[block + 1]))
        alive = begun_with(list(chains(source.menu)), self.candidates, seed)
        return BlockNetwork(source.menu, lesson, alive, self.paths, seed).to(source.device)

    # --- the plan of time --------------------------------------------------------------------------------------------

    def amounts(self, run: StageRun) -> dict[str, Amount]:
        return {"steps": steps_amount(self.steps, "steps of a round")}

    def speeds(self, run: StageRun) -> dict[str, float]:
        from formwright.pipeline.blocks_times import block_seconds

        step, judging = block_seconds(run.artifact(self.source), self.paths, self.candidates)
        return {"step": step, "judging": judging}

    def seconds(self, amounts: Mapping[str, int], speeds: Mapping[str, float], run: StageRun) -> float:
        block = (self.rounds + 1) * amounts["steps"] * speeds["step"] + speeds["judging"]
        return block * turns(run.artifact(self.source).menu.blocks, run.options.workers)

    def describe(self, amounts: Mapping[str, int], run: StageRun) -> str:
        blocks = run.artifact(self.source).menu.blocks
        return f"{blocks} blocks, {self.rounds + 1} times {amounts['steps']:,} steps each"

    def planned(self, amounts: Mapping[str, int], run: StageRun) -> "TrainBlocks":
        return replace(self, steps=amounts["steps"])


@dataclass(frozen=True, eq=False)
class TrainedBlocks:
    """Trained blocks: for each the chains that are left, with their losses, and the weights."""

    stage: TrainBlocks
    source: Source
    bases: "Sequence[Basis]"
    tables: list[Table]
    folders: Sequence[Path]

    @cached_property
    def networks(self) -> "list[BlockNetwork]":
        from formwright.supernet.block_rounds import WEIGHTS, restored

        return [
            restored(
                self.stage.network(self.source, self.bases, block),
                read_tensors(folder / WEIGHTS),
                [chain for chain, _ in self.tables[block]],
            )
            for block, folder in enumerate(self.folders)
        ]


def read_table(folder: Path) -> Table:
    """Read the chains of a block that are left, with their losses."""
    return [(chain, row["loss"]) for chain, row in read_rows(folder / "table.json")]


def _folder(run: StageRun, block: int) -> Path:
    return run.folder / str(block)
