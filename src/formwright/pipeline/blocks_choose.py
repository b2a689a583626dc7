"""The stage that chooses a chain for each size: the best by the sum of block losses, compared with the teacher."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from formwright.core.errors import IllegalInput
from formwright.core.files import read_json, write_json
from formwright.core.options import Stage, option
from formwright.pipeline.blocks_bases import FitBases, Fitted, MeasureOperations, timer
from formwright.pipeline.blocks_source import LoadTeacher, Source
from formwright.pipeline.blocks_train import TrainBlocks, TrainedBlocks
from formwright.pipeline.run import StageRun
from formwright.search.chain_costs import PartCosts, blocks_of, refuse_sizes
from formwright.search.model_sizes import LATENCY, Size, exceeded, parse_sizes
from formwright.space.zoo.chains import Chain, chain_card

if TYPE_CHECKING:
    from formwright.arch.card import Card
    from formwright.nn.part_latency import Measured
    from formwright.search.block_choice import Assembly, Blocks
    from formwright.supernet.blockwise import DistilledStudent

CHOICES = "choices.json"
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
            parts = self.parts(run)
            with threads(1):
                found = {size.name: self.compared(size, parts, timer(parts.source)) for size in missing}
            plain = {name: [asdict(one) for one in compared] for name, compared in found.items()}
            write_json(run.folder / CHOICES, known | plain)

    def reaches(self, run: StageRun) -> bool:
        return {size.name for size in self.asked} <= self._known(run).keys()

    def load(self, run: StageRun) -> dict[str, Choice]:
        read = read_json(run.folder / CHOICES)
        return {size.name: Choice.from_json(read[size.name][0]) for size in self.asked}

    def parts(self, run: StageRun) -> "Parts":
        """Give everything that whole students are put together from."""
        source: Source = run.artifact(self.source)
        costs = PartCosts(source.menu, run.artifact(self.latency))
        return Parts(source, costs, run.artifact(self.bases), run.artifact(self.blocks))

    def _known(self, run: StageRun) -> dict[str, Any]:
        """Read what was compared before; nothing where that is missing or damaged."""
        try:
            read = read_json(run.folder / CHOICES)
            return {name: compared for name, compared in read.items() if Choice.from_json(compared[0])}
        except (IllegalInput, AttributeError, IndexError, KeyError, TypeError):
            return {}

    def compared(self, size: Size, parts: "Parts", measured: "Measured") -> list[Choice]:
        """Compare the best few with the teacher: those within the limits as measured first, and the nearest of them."""
        found = [parts.choice(one) for one in parts.table.best(size.limits, self.checked)]
        if LATENCY in size.limits:
            times = least_of(measured, [chain_card(parts.source.menu, one.table, one.blocks) for one in found])
            found = [replace(one, measured_ms=time) for one, time in zip(found, times, strict=True)]
        return sorted(found, key=lambda one: (bool(exceeded(size, _measured(one))), one.distance))


@dataclass(frozen=True, eq=False)
class Parts:
    """The trained blocks and the embeddings that whole students are put together from."""

    source: Source
    costs: PartCosts
    fitted: Fitted
    trained: TrainedBlocks

    @property
    def table(self) -> "Blocks":
        """Give the tables that chains are chosen from."""
        return blocks_of(self.costs, self.fitted.losses, self.trained.tables)

    def student(self, table: int, blocks: Sequence[Chain]) -> "DistilledStudent":
        """Put a whole student together, ready to be compared with the teacher, or trained further."""
        from formwright.nn.settings import Settings
        from formwright.supernet.blockwise import DistilledStudent, assembled, chain_weights

        layers = [chain_weights(network, block) for network, block in zip(self.trained.networks, blocks, strict=True)]
        embedding, settings = self.fitted.embeddings[table].weights, Settings(dropout=0.0)
        model = assembled(self.source.menu, blocks, embedding, layers, self.fitted.bases, settings)
        model.to(self.source.device)
        return DistilledStudent(model, blocks, self.source.teacher, self.source.ends, self.fitted.bases)

    def choice(self, assembly: "Assembly") -> Choice:
        """Put an assembly together and compare it with the teacher."""
        table = self.source.menu.embeddings[assembly.chosen[0]]
        rows = zip(self.trained.tables, assembly.chosen[1:], strict=True)
        blocks = tuple(chains[place][0] for chains, place in rows)
        distance = self.student(table, blocks).distance(self.source.held_batches(_HELD))
        return Choice(table, blocks, assembly.loss, dict(assembly.costs), distance)


def least_of(measured: "Measured", cards: "Sequence[Card]") -> list[float]:
    """Measure designs in turns, as the times of operations are measured, and give the least time of each."""
    turns = [[measured(card) for card in cards] for _ in range(_TURNS)]
    return [min(times) for times in zip(*turns, strict=True)]


def _measured(choice: Choice) -> dict[str, float]:
    return {} if choice.measured_ms is None else {LATENCY: choice.measured_ms}
