"""Cards and tasks of every kind that train in a moment, and models whose answers are known beforehand."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial

import numpy as np
import torch
from torch import Tensor, nn

from formwright.arch.card import Card
from formwright.arch.embeddings import FrameEmbedding, PatchEmbedding, TokenEmbedding
from formwright.arch.heads import HeadSpec
from formwright.arch.layers import Block, Stack
from formwright.arch.ops import Attention, CrossAttention
from formwright.core.rng import derive
from formwright.nn.build import build
from formwright.nn.task_model import TaskModel
from formwright.tasks import TASKS
from formwright.tasks.encode import Encoded, Ragged
from formwright.tasks.frames import FrameRows
from formwright.tasks.rows import AnyRows, SpanRows, Splits, TaggedRows, TextRows
from formwright.tasks.task import Task, first_rows
from formwright.train.streams import Batch

VOCABULARY, LENGTH = 320, 32
TABLE = TokenEmbedding(VOCABULARY, 16, length=LENGTH, types=2)
BLOCK = Block(16, Attention(2, 8), (32,))
ENCODER = Card(encoder=Stack(TABLE, (BLOCK,)))
DECODER = Card(decoder=Stack(TABLE, (BLOCK,), causal=True))
BOTH = Card(
    encoder=Stack(TABLE, (BLOCK,)), decoder=Stack(TABLE, (replace(BLOCK, cross=CrossAttention(2, 8)),), causal=True)
)
VISION = Card(encoder=Stack(PatchEmbedding(8, 4, 16, channels=1), (BLOCK,)))
FRAMES = Card(encoder=Stack(FrameEmbedding(8, 16, length=LENGTH), (BLOCK,)))
COLOURS = ("red", "blue", "green", "white", "black", "brown", "pink", "grey")


def with_types(types: int) -> Card:
    """Give the encoder with another number of kinds of sentences."""
    return Card(encoder=Stack(replace(TABLE, types=types), (BLOCK,)))


def _first(task: Task, number: int) -> Splits[AnyRows]:
    whole = task.search_view()  # which is kept, for others who want more or fewer rows
    return Splits(first_rows(whole.train, number), first_rows(whole.validation, number // 4), None)


@cache
def few(name: str, number: int = 256) -> Task:
    """Give the first rows of a builtin task."""
    task = TASKS.get(name)
    return replace(task, splits=partial(_first, task, number))


def _colours(number: int) -> SpanRows:
    drawn = np.random.default_rng(number).choice(COLOURS, (number, 2))
    contexts = tuple(f"my house is {house} and my car is {car} today" for house, car in drawn)
    starts = (context.index(" is ") + 4 for context in contexts)
    answers = tuple(((str(house), start),) for (house, _), start in zip(drawn, starts, strict=True))
    return SpanRows(("which colour has the house",) * number, contexts, answers)


def _colour_splits() -> Splits[SpanRows]:
    return Splits(_colours(192), _colours(40), None)


SPANS = Task("colours", "span-extraction", "span-f1", _colour_splits, ("exact", "span-f1"))


def _named_colours(number: int) -> TextRows:
    """Give sentences that name two colours, and which of all colours they name."""
    contexts = _colours(number).contexts
    return TextRows(
        tuple((text,) for text in contexts),
        tuple(tuple(int(colour in text.split()) for colour in COLOURS) for text in contexts),
    )


def _named_colour_splits() -> Splits[TextRows]:
    return Splits(_named_colours(192), _named_colours(40), None)


SEVERAL = Task(
    "named colours",
    "multi-label-classification",
    "micro-f1",
    _named_colour_splits,
    ("micro-f1", "macro-f1", "subset-accuracy"),
    COLOURS,
)


def _tagged_colours(number: int) -> TaggedRows:
    """Give sentences in which the colour of a house is tagged, and that of a car is not."""
    words = tuple(tuple(text.split()) for text in _colours(number).contexts)
    return TaggedRows(words, tuple(tuple(int(place == 3) for place in range(len(row))) for row in words))


TAGS = Task(
    "colours of houses",
    "token-classification",
    "entity-f1",
    lambda: Splits(_tagged_colours(192), _tagged_colours(40), None),
    ("entity-f1", "tag-accuracy"),
    ("O", "B-colour"),
)


def _waves(number: int) -> FrameRows:
    """Give noisy series of unequal length: slow waves, fast ones, and none."""
    rng = derive(number, "waves")
    series = [
        np.sin(np.arange(steps) * (0.2, 1.2, 0)[row % 3])[:, None] + 0.1 * rng.normal(size=(steps, 1))
        for row, steps in enumerate(rng.integers(12, 60, number))
    ]
    return FrameRows.of(series, [row % 3 for row in range(number)])


def _wave_splits() -> Splits[FrameRows]:
    return Splits(_waves(192), _waves(48), None)


WAVES = Task("waves", "frame-classification", "accuracy", _wave_splits, labels=("slow", "fast", "none"))


def _marked_colours(number: int) -> TextRows:
    """Give sentences with two marked colours; the relation says whether that of the house comes first."""
    drawn = np.random.default_rng(number).integers(2, size=number)
    pairs = [("house", "car") if first else ("car", "house") for first in drawn]
    texts = [(f"the <e1>{one}</e1> is near the <e2>{other}</e2>",) for one, other in pairs]
    return TextRows(tuple(texts), tuple(int(first) for first in drawn))


RELATIONS = Task(
    "near",
    "relation-classification",
    "relation-f1",
    lambda: Splits(_marked_colours(192), _marked_colours(40), None),
    ("relation-f1", "accuracy"),
    ("Near(e1,e2)", "Near(e2,e1)"),
)

EVERY_KIND: dict[str, tuple[Card, Callable[[], Task]]] = {
    "sequence-classification": (ENCODER, partial(few, "mini-glue/sst2", 64)),
    "multi-label-classification": (ENCODER, lambda: SEVERAL),
    "regression": (ENCODER, partial(few, "mini-glue/stsb", 64)),
    "masked-lm": (ENCODER, partial(few, "pydoc/masked", 64)),
    "causal-lm": (DECODER, partial(few, "pydoc/causal", 64)),
    "seq2seq-lm": (BOTH, partial(few, "translation")),
    "image-classification": (VISION, partial(few, "digits")),
    "span-extraction": (ENCODER, lambda: SPANS),
    "token-classification": (ENCODER, lambda: TAGS),
    "frame-classification": (FRAMES, lambda: WAVES),
    "relation-classification": (ENCODER, lambda: RELATIONS),
}


def task_of(kind: str, metric: str, train: AnyRows, validation: AnyRows | None = None, labels: int = 0) -> Task:
    """Make a task of rows at hand."""
    splits = Splits(train, train if validation is None else validation, None)
    return Task("handmade", kind, metric, lambda: splits, labels=tuple(str(label) for label in range(labels)))


def encoded(
    sequences: list[list[int]], labels: list[int] | None = None, targets: list[list[int]] | None = None
) -> Encoded:
    """Make arrays of token numbers at hand; all are of the first sentence."""
    return Encoded(
        Ragged.of(sequences),
        Ragged.of([[0] * len(sequence) for sequence in sequences]),
        None if labels is None else np.array(labels, np.int64),
        None if targets is None else Ragged.of(targets),
    )


class Stub(nn.Module):
    """Answer with a function of the input tokens, or of the target tokens where there are any."""

    def __init__(self, answer: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.anchor = nn.Parameter(torch.zeros(1))  # a model is where its parameters are
        self.answer = answer

    def forward(
        self,
        inputs: Tensor,
        mask: Tensor | None = None,
        types: Tensor | None = None,
        targets: Tensor | None = None,
        targets_mask: Tensor | None = None,
        positions: Tensor | None = None,
    ) -> Tensor:
        scores = self.answer(inputs if targets is None else targets)
        return scores if positions is None else scores[positions]


TOY_CARD = Card(encoder=Stack(TokenEmbedding(12, 16, length=8), (Block(16, Attention(2, 8), (32,)),)))


class Toy:
    """A task that is learned in a second: sentences of six tokens, and whether token 1 is among them."""

    def batch(self, step: int) -> Batch:
        ids = torch.from_numpy(derive(0, "toy", step).integers(1, 10, (16, 6)))
        return Batch(ids, (ids == 1).any(1).long())


def toy_model(seed: int = 0) -> TaskModel:
    return build(TOY_CARD, head=HeadSpec("sequence-classification", 2), seed=seed)
