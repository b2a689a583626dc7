"""The stages that train the blocks of a teacher: projections fitted between them, then each block by itself."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from formwright.core.checks import natural
from formwright.core.errors import IllegalInput
from formwright.core.files import read_json, unreadable, write_file, write_json
from formwright.core.options import Stage, option
from formwright.pipeline.blocks_source import LoadTeacher, MeasureOperations, Source
from formwright.pipeline.plan import Planned, WorkAmount
from formwright.pipeline.run import StageRun
from formwright.pipeline.units import Unit, steps_amount, train_units, turns
from formwright.search.chain_costs import PartCosts, blocks_of, shortest_stay
from formwright.supernet.chain_rows import read_rows

if TYPE_CHECKING:
    from torch import Tensor

    from formwright.search.block_choice import Blocks
    from formwright.space.zoo.chains import Chain
    from formwright.supernet.bases import Basis, NarrowEmbedding
    from formwright.supernet.blockwise import BlockNetwork, BlockRounds, DistilledStudent

Table = list[tuple["Chain", float]]
BASES, EMBEDDINGS, LOSSES = "bases.safetensors", "embeddings.safetensors", "embeddings.json"
_FITTED, _HELD = 32, 4  # batches of text that bases and embeddings are fitted to, and that embeddings are judged by
_STEPS = "steps.json"  # with how many steps of a round the blocks were begun


@dataclass(frozen=True, eq=False)
class FittedBases:
    """The bases of all boundaries between blocks, and the embeddings by their width."""

    bases: "list[Basis]"
    embeddings: "Mapping[int, NarrowEmbedding]"

    @property
    def losses(self) -> dict[int, float]:
        return {width: found.loss for width, found in self.embeddings.items()}


@dataclass(frozen=True)
class FitBases(Stage, Planned):
    """Fit projections between blocks of several widths, and narrower embeddings, to the teacher."""

    NAME = "bases"

    source: LoadTeacher

    def make(self, run: StageRun) -> None:
        from safetensors.torch import save

        from formwright.supernet.bases import fit_bases, fit_embedding, to_tensors
        from formwright.train.device import threads

        run.tell("fitting projections and embeddings to the teacher")
        source: Source = run.artifact(self.source)
        stream = source.stream(source.stage.seed)
        with threads(1):  # sums of floats depend on their number
            batches = [stream.batch(step).to(source.device) for step in range(_FITTED)]
            bases = fit_bases(source.teacher, batches, source.ends)
            held = source.held_batches(_HELD)
            found = {
                width: fit_embedding(source.teacher, bases[0], width, batches, held) for width in source.menu.embeddings
            }
        named = {f"{width}/{name}": tensor for width, one in found.items() for name, tensor in one.weights.items()}
        write_file(run.folder / EMBEDDINGS, save({name: tensor.cpu().contiguous() for name, tensor in named.items()}))
        write_json(run.folder / LOSSES, {str(width): one.loss for width, one in found.items()})
        write_file(run.folder / BASES, save(to_tensors(bases)))

    def load(self, run: StageRun) -> FittedBases:
        from formwright.supernet.bases import NarrowEmbedding, from_tensors

        weights: dict[int, dict[str, Tensor]] = {}
        for path, tensor in read_tensors(run.folder / EMBEDDINGS).items():
            width, _, name = path.partition("/")
            weights.setdefault(int(width), {})[name] = tensor
        losses = embedding_losses(run.folder)
        found = {width: NarrowEmbedding(weights[width], loss) for width, loss in losses.items()}
        return FittedBases(from_tensors(read_tensors(run.folder / BASES)), found)

    def amounts(self, run: StageRun) -> dict[str, WorkAmount]:
        return {}

    def speeds(self, run: StageRun) -> dict[str, float]:
        from formwright.pipeline.model_times import fitting_seconds

        return {"fit": fitting_seconds(run.artifact(self.source))}

    def seconds(self, amounts: Mapping[str, int], speeds: Mapping[str, float], run: StageRun) -> float:
        return speeds["fit"]

    def describe(self, amounts: Mapping[str, int], run: StageRun) -> str:
        return "projections and embeddings fitted to the teacher"


def embedding_losses(folder: Path) -> dict[int, float]:
    """Read the losses of the embeddings by their width."""
    return {int(width): float(loss) for width, loss in read_json(folder / LOSSES).items()}


def read_tensors(path: Path) -> "dict[str, Tensor]":
    from safetensors import SafetensorError
    from safetensors.torch import load

    try:
        return load(path.read_bytes())
    except (OSError, SafetensorError) as error:
        raise unreadable(path, error) from None


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
        from formwright.supernet.blockwise import is_trained

        stage = self._as_begun(run)
        folders = block_folders(run, run.artifact(self.source).menu.blocks)
        left = [block for block, folder in enumerate(folders) if not is_trained(folder)]
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
        folders = block_folders(run, source.menu.blocks)
        costs = PartCosts(source.menu, run.artifact(self.latency))
        return TrainedBlocks(self, source, costs, run.artifact(self.bases), list(map(read_table, folders)), folders)

    @property
    def all_steps(self) -> int:
        """Count the steps of all rounds, and those of the chains that are left."""
        return (self.rounds + 1) * self.steps

    def training(self, run: StageRun, block: int) -> "BlockRounds":
        """Give the training of a block, with everything that it needs."""
        from formwright.supernet.blockwise import BlockRounds
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
            folder=run.folder / str(block),
        )

    def network(self, source: Source, bases: "Sequence[Basis]", block: int) -> "BlockNetwork":
        from formwright.space.zoo.chains import chains
        from formwright.supernet.blockwise import BlockNetwork, BlockTarget, first_chains

        ends, seed = (source.ends[block], source.ends[block + 1]), source.seed("block", block)
        target = BlockTarget(source.teacher, ends, (bases[block], bases[block + 1]))
        alive = first_chains(list(chains(source.menu)), self.candidates, seed)
        return BlockNetwork(source.menu, target, alive, self.paths, seed).to(source.device)

    # --- the plan of time --------------------------------------------------------------------------------------------

    def amounts(self, run: StageRun) -> dict[str, WorkAmount]:
        return {"steps": steps_amount(self.steps, "steps of a round")}

    def speeds(self, run: StageRun) -> dict[str, float]:
        from formwright.pipeline.model_times import block_seconds

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
    """Everything that whole students are put together from: embeddings, and each block's weights and chains by loss."""

    stage: TrainBlocks
    source: Source
    costs: PartCosts
    fitted: FittedBases
    tables: list[Table]
    folders: Sequence[Path]

    @cached_property
    def networks(self) -> "list[BlockNetwork]":
        from formwright.supernet.blockwise import restored

        return [
            restored(
                self.stage.network(self.source, self.fitted.bases, block),
                folder,
                [chain for chain, _ in self.tables[block]],
            )
            for block, folder in enumerate(self.folders)
        ]

    @property
    def choices(self) -> "Blocks":
        """Give the tables that whole chains are chosen from."""
        return blocks_of(self.costs, self.fitted.losses, self.tables)

    def student(self, table: int, blocks: "Sequence[Chain]") -> "DistilledStudent":
        """Put a whole student together, ready to be compared with the teacher, or trained further."""
        from formwright.nn.settings import Settings
        from formwright.supernet.blockwise import DistilledStudent, assembled, chain_weights

        layers = [chain_weights(network, block) for network, block in zip(self.networks, blocks, strict=True)]
        embedding, settings = self.fitted.embeddings[table].weights, Settings(dropout=0.0)
        model = assembled(self.source.menu, blocks, embedding, layers, self.fitted.bases, settings)
        model.to(self.source.device)
        return DistilledStudent(model, blocks, self.source.teacher, self.source.ends, self.fitted.bases)


def read_table(folder: Path) -> Table:
    """Read the chains of a block that are left, with their losses."""
    return [(chain, row["loss"]) for chain, row in read_rows(folder / "table.json")]


def block_folders(run: StageRun, blocks: int) -> list[Path]:
    return [run.folder / str(block) for block in range(blocks)]
