"""A block-wise compression: what the user wishes, and the teacher and the text that it begins with."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from formwright.compress.begin import demo_folder, refuse_broken, refuse_tokeniser
from formwright.compress.blockwise.costs import PartCosts, blocks_of, untimed
from formwright.compress.blockwise.method import Method
from formwright.compress.blockwise.sizes import LATENCY, PARAMS, Size, parse_sizes, refuse_sizes
from formwright.compress.blockwise.text import read_text
from formwright.cost import params
from formwright.nn.hf.files import find_folder
from formwright.nn.hf.imported import Imported
from formwright.nn.hf.load import from_hf
from formwright.nn.transformer import Transformer
from formwright.space.zoo.chains import Menu, boundaries
from formwright.tasks.encode import Encoded
from formwright.tasks.pretrained_tokeniser import read_tokeniser
from formwright.tasks.rows import PlainText
from formwright.tasks.tokeniser import Tokeniser
from formwright.train.batch import Batch
from formwright.train.device import choose_device
from formwright.train.plain import Plain, plain
from formwright.train.prepare import encode_for
from formwright.train.streams import Shuffled, in_order
from formwright.train.weights_digest import weights_digest


@dataclass(frozen=True)
class Job:
    """Everything that decides what a compression comes to, but for what `hours` make of it on this machine.

    `rows` is how many pieces of the text are learned from at most.
    """

    model: str
    text: str
    data: str | None
    sizes: str
    hours: float | None
    length: int
    rows: int | None
    method: Method
    device: str
    seed: int

    def started(self) -> "Started":
        """Read the teacher and the text; refuse what cannot be compressed."""
        sizes = parse_sizes(self.sizes)
        device = choose_device(self.device)
        folder = find_folder(self.model) if self.model else demo_folder()
        imported = from_hf(folder, head=False)
        menu = self.method.menu(imported.card)
        refuse_broken(imported, folder)
        tokeniser = read_tokeniser(folder)
        refuse_tokeniser(tokeniser, imported.card, folder)
        text = read_text(self.text, None if self.data is None else Path(self.data), self.length)
        learned = PlainText(text.learned.texts[: self.rows])
        read, held = (encode_for(imported.card, rows, tokeniser, self.length) for rows in (learned, text.held))
        teacher = imported.model()
        assert isinstance(teacher, Transformer)
        name = folder.name if self.model else "MiniLM"
        digests = {"text": learned.digest, "held text": text.held.digest, "tokeniser": tokeniser.digest}
        return Started(self, name, sizes, imported, teacher.to(device), menu, tokeniser, read, held, digests)

    def options(self) -> dict[str, Any]:
        """Give as JSON data what decides how blocks are trained, by which a later run is known to be the same.

        Sizes and the steps of students are left out: trained blocks serve every size.
        """
        own = asdict(self)
        found = {**own, **own["method"]}
        return {
            name: value for name, value in found.items() if name not in ("menu", "method", "sizes", "student_steps")
        }


@dataclass(frozen=True, eq=False)
class Started:
    """A job with its teacher and its text."""

    job: Job
    name: str
    sizes: tuple[Size, ...]
    imported: Imported
    teacher: Transformer
    menu: Menu
    tokeniser: Tokeniser
    learned: Encoded
    held: Encoded
    text_digests: dict[str, str]

    @property
    def ends(self) -> tuple[int, ...]:
        """Say after how many of the teacher's layers each block ends, its embedding first."""
        return boundaries(len(self.imported.card.stacks[0].layers), self.menu.blocks)

    def digests(self) -> dict[str, str | None]:
        """Tell by content what the compression begins with; a file may change and keep its name."""
        own = {"card": self.imported.card.digest, "weights": weights_digest(self.imported.weights)}
        return {**own, **self.text_digests}

    def refuse(self) -> None:
        """Refuse, before anything is measured or trained, sizes that no chain has, or that exceed the teacher's own."""
        least, most = untimed(self.menu).extremes(PARAMS)
        refuse_sizes(self.sizes, PARAMS, least, min(most, params(self.imported.card)))

    def refuse_slow(self, costs: PartCosts) -> None:
        """Refuse, before anything is trained, milliseconds that no chain keeps, alone or beside its size."""
        refuse_sizes(self.sizes, LATENCY, *costs.extremes(LATENCY))
        ends = blocks_of(costs, dict.fromkeys(self.menu.embeddings, 0.0), [costs.ends] * self.menu.blocks)
        for size in self.sizes:
            ends.refuse(size.limits)

    @property
    def longest(self) -> int:
        """Count the tokens of the longest held-out piece, which is what is measured."""
        return int(self.held.tokens.lengths.max())

    def stream(self, seed: int) -> Plain:
        """Give the batches to learn from, in an order of their own for each seed."""
        return Plain(self.learned, Shuffled(self.learned.tokens.lengths, self.job.method.batch, seed))

    def held_batches(self, number: int) -> Sequence[Batch]:
        """Give so many batches of held-out text: the middle one of each of as many equal parts, the shortest first."""
        found = self._held
        step = max(len(found) / number, 1.0)
        return [found[int((place + 0.5) * step)] for place in range(min(number, len(found)))]

    @cached_property
    def _held(self) -> list[Batch]:
        device = choose_device(self.job.device)
        return [plain(self.held, rows).to(device) for rows in in_order(self.held, self.job.method.batch)]
