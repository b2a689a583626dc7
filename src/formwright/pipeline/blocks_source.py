"""What block-wise stages share: a pretrained teacher with the text that students learn from it on, and times."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from formwright.core.errors import FormwrightError, IllegalInput
from formwright.core.files import read_json, unreadable, write_json
from formwright.core.options import Stage, option
from formwright.core.rng import derive
from formwright.pipeline.run import StageRun
from formwright.search.chain_costs import untimed

if TYPE_CHECKING:
    from formwright.arch.card import Card
    from formwright.cost.latency_tables import OperationTimes
    from formwright.nn.latency import Measured
    from formwright.nn.transformer import Transformer
    from formwright.space.zoo.chains import Menu
    from formwright.tasks.encode import Encoded
    from formwright.tasks.tokeniser import Tokeniser
    from formwright.train.streams import Batch, ShuffledStream

TEACHER, TIMES = "teacher.json", "times.json"
DEMO = "MiniLM"  # the model where none is named


@dataclass(frozen=True)
class LoadTeacher(Stage):
    """Load a pretrained encoder, and cut a text into pieces that it reads: some to learn from, others held out."""

    NAME = "source"

    model: str = option("", "folder of a pretrained encoder, or its name on the hub (default: MiniLM of `demo`)")
    text: str = option("", "a file of text, or wikitext (default: the documentation of Python)")
    data: str | None = option(None, "folder of the files of wikitext")
    length: int = option(64, "maximum number of tokens in a piece of text", least=8)
    rows: int | None = option(None, "maximum number of pieces to learn from", least=1)
    batch: int = option(16, "pieces of text in a batch", least=1)
    device: str = option("auto", "device of the trainings")
    seed: int = option(0, "random seed", least=0, most=2**63 - 1)

    def resolved(self, run: StageRun) -> "LoadTeacher":
        """Make paths absolute: a run is resumed from anywhere."""
        changes: dict[str, Any] = {
            name: str(Path(value).resolve())
            for name, value in (("model", self.model), ("text", self.text), ("data", self.data))
            if value and Path(value).exists()
        }
        found = replace(self, **changes)
        return self if found == self else found

    def check(self, run: StageRun) -> None:
        self.load(run)

    def contents(self, run: StageRun) -> Mapping[str, Any]:
        return self.load(run).digests

    def make(self, run: StageRun) -> None:
        source = self.load(run)
        facts = {"name": source.name, "card": source.card.to_json(), "text": Path(self.text).name}
        write_json(run.folder / TEACHER, facts)

    def load(self, run: StageRun) -> "Source":
        found: Source = run.run.once(self, self._read)
        return found

    def _read(self) -> "Source":
        from formwright.nn.hf.checkpoint_files import find_folder
        from formwright.nn.hf.load import from_hf
        from formwright.nn.transformer import Transformer
        from formwright.pipeline.start_model import demo_folder, refuse_broken
        from formwright.space.zoo.chains import scaled
        from formwright.tasks.corpora import text_pieces
        from formwright.tasks.pretrained_tokeniser import read_tokeniser
        from formwright.tasks.rows import PlainText
        from formwright.train.checkpoint import weights_digest
        from formwright.train.device import choose_device
        from formwright.train.prepare import encode_for

        device = choose_device(self.device)
        folder = find_folder(self.model) if self.model else demo_folder()
        imported = from_hf(folder, head=False)
        menu = scaled(imported.card)
        tokeniser = read_tokeniser(folder)
        refuse_broken(imported, tokeniser, folder)
        text = text_pieces(self.text, None if self.data is None else Path(self.data), self.length)
        rows = PlainText(text.train.texts[: self.rows])
        learned, held = (encode_for(imported.card, one, tokeniser, self.length) for one in (rows, text.validation))
        teacher = imported.model()
        assert isinstance(teacher, Transformer)
        digests = {
            "card": imported.card.digest,
            "weights": weights_digest(imported.weights),
            "text": rows.digest,
            "held text": text.validation.digest,
            "tokeniser": tokeniser.digest,
        }
        name = folder.name if self.model else DEMO
        return Source(self, name, teacher.to(device), imported.card, menu, tokeniser, learned, held, digests)


@dataclass(frozen=True, eq=False)
class Source:
    """A teacher with its menu of chains, and the text in arrays that it reads."""

    stage: LoadTeacher
    name: str
    teacher: "Transformer"
    card: "Card"
    menu: "Menu"
    tokeniser: "Tokeniser"
    learned: "Encoded"
    held: "Encoded"
    digests: Mapping[str, Any]

    @property
    def ends(self) -> tuple[int, ...]:
        """Say after how many of the teacher's layers each block ends, its embedding first."""
        from formwright.space.zoo.chains import boundaries

        return boundaries(len(self.card.stacks[0].layers), self.menu.blocks)

    @property
    def device(self) -> Any:
        from formwright.train.device import choose_device

        return choose_device(self.stage.device)

    @property
    def longest(self) -> int:
        """Count the tokens of the longest held-out piece, which is what is measured."""
        return int(self.held.tokens.lengths.max())

    @property
    def timer(self) -> "Measured":
        """Give the function that measures a design on the longest held-out piece of text."""
        from formwright.nn.latency import quick

        return quick(self.longest)

    def seed(self, *purpose: Any) -> int:
        return int(derive(self.stage.seed, *purpose).integers(1 << 31))

    def stream(self, seed: int) -> "ShuffledStream":
        """Give the batches to learn from, in an order of their own for each seed."""
        from formwright.train.streams import Shuffled, ShuffledStream, plain

        return ShuffledStream(self.learned, Shuffled(self.learned.tokens.lengths, self.stage.batch, seed), plain)

    def held_batches(self, number: int) -> "Sequence[Batch]":
        """Give a number of held-out batches: the middle one of each of as many equal parts, the shortest first."""
        found = self._held
        step = max(len(found) / number, 1.0)
        return [found[int((place + 0.5) * step)] for place in range(min(number, len(found)))]

    @cached_property
    def _held(self) -> "list[Batch]":
        from formwright.train.streams import in_order, plain

        return [plain(self.held, rows).to(self.device) for rows in in_order(self.held, self.stage.batch)]

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_held"}


@dataclass(frozen=True)
class MeasureOperations(Stage):
    """Measure how long each operation takes on this machine, at each width."""

    NAME = "operation-times"

    source: LoadTeacher

    def make(self, run: StageRun) -> None:
        write_json(run.folder / TIMES, self.measured(run).to_json())

    def load(self, run: StageRun) -> "OperationTimes":
        """Read the times; measure them where a check asks before they are written."""
        if not run.run.force:  # what is to be overwritten is not read
            with suppress(IllegalInput):
                return read_times(run.folder / TIMES, run.artifact(self.source).menu)
        return self.measured(run)

    def measured(self, run: StageRun) -> "OperationTimes":
        from formwright.nn.latency import measured_operations, measurements

        source: Source = run.artifact(self.source)

        def measure() -> "OperationTimes":
            run.tell("measuring operations on this machine")
            with run.progress("operations", measurements(source.menu)) as tell:
                return measured_operations(source.menu, measured=source.timer, after=lambda number: tell(number, None))

        found: OperationTimes = run.run.once(self, measure)
        return found


def read_times(path: Path, menu: "Menu") -> "OperationTimes":
    """Read the times of operations; refuse a file that lacks one of a menu."""
    from formwright.cost.latency_tables import OperationTimes

    try:
        times = OperationTimes.from_json(read_json(path))
    except FormwrightError as error:
        raise unreadable(path, error) from None
    needed = untimed(menu).times
    for name in ("embeddings", "operations", "joints"):
        if getattr(needed, name).keys() - getattr(times, name).keys():
            raise unreadable(path, f"it lacks times of {name}")
    return times
