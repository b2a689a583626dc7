"""The stage that block-wise stages share: a pretrained teacher, and the text that students learn from it on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from formwright.core.files import write_json
from formwright.core.options import Stage, option
from formwright.core.rng import derive
from formwright.pipeline.run import StageRun

if TYPE_CHECKING:
    from formwright.arch.card import Card
    from formwright.nn.transformer import Transformer
    from formwright.space.zoo.chains import Menu
    from formwright.tasks.encode import Encoded
    from formwright.tasks.tokeniser import Tokeniser
    from formwright.train.streams import Batch, Plain

TEACHER = "teacher.json"
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
        from formwright.pipeline.pretrained import demo_folder, refuse_broken, refuse_tokeniser
        from formwright.space.zoo.chains import scaled
        from formwright.tasks.pretrained_tokeniser import read_tokeniser
        from formwright.tasks.rows import PlainText
        from formwright.tasks.text_pieces import read_text
        from formwright.train.checkpoint import weights_digest
        from formwright.train.device import choose_device
        from formwright.train.prepare import encode_for

        device = choose_device(self.device)
        folder = find_folder(self.model) if self.model else demo_folder()
        imported = from_hf(folder, head=False)
        menu = scaled(imported.card)
        refuse_broken(imported, folder)
        tokeniser = read_tokeniser(folder)
        refuse_tokeniser(tokeniser, imported.card, folder)
        text = read_text(self.text, None if self.data is None else Path(self.data), self.length)
        rows = PlainText(text.learned.texts[: self.rows])
        learned, held = (encode_for(imported.card, one, tokeniser, self.length) for one in (rows, text.held))
        teacher = imported.model()
        assert isinstance(teacher, Transformer)
        digests = {
            "card": imported.card.digest,
            "weights": weights_digest(imported.weights),
            "text": rows.digest,
            "held text": text.held.digest,
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

    def seed(self, *purpose: Any) -> int:
        return int(derive(self.stage.seed, *purpose).integers(1 << 31))

    def stream(self, seed: int) -> "Plain":
        """Give the batches to learn from, in an order of their own for each seed."""
        from formwright.train.streams import Plain, Shuffled

        return Plain(self.learned, Shuffled(self.learned.tokens.lengths, self.stage.batch, seed))

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
