"""From a task to arrays that a card can be trained on: tokeniser, tokens, and nothing that the card cannot read."""

from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np

from formwright.arch.card import Card
from formwright.arch.layers import PatchEmbedding, TokenEmbedding
from formwright.core.errors import IllegalInput
from formwright.core.remember import remember
from formwright.tasks.encode import Encoded, Ragged, encode_rows
from formwright.tasks.row_length import LEAST, PIECES, Cut, covering, uncut_sizes
from formwright.tasks.rows import ImageRows, PlainText, Rows, TextRows
from formwright.tasks.spans import SpanRows
from formwright.tasks.subwords import train_subwords
from formwright.tasks.task import Task
from formwright.tasks.tokeniser import Tokeniser, train_wordpiece
from formwright.tasks.windows import Windows, encode_spans
from formwright.train.streams import Examples

_READS = {"tokens": "text", "patches": "images", "frames": "frames"}  # by the type of an embedding


@dataclass(frozen=True, eq=False)
class Part:
    """Some rows of a task and their arrays; `windows` says which question each row of a span task belongs to."""

    rows: Rows | SpanRows
    examples: Examples
    windows: Windows | None = None


@dataclass(frozen=True, eq=False)
class Prepared:
    """What a search sees of a task, in arrays; `tokeniser` is None for images.

    `beams` says how many texts are in the race when a model that writes is judged.
    """

    task: Task
    tokeniser: Tokeniser | None
    length: int
    types: int
    train: Part
    validation: Part
    beams: int = 1

    @property
    def digests(self) -> tuple[str, str, str | None]:
        """Name the content of the training rows, of the validation rows and of the tokeniser."""
        return (*_row_digests(self.task), None if self.tokeniser is None else self.tokeniser.digest)

    @property
    def text_tokeniser(self) -> Tokeniser:
        """Give the tokeniser of a task that has text."""
        assert self.tokeniser is not None, f"{self.task.name} has no text"
        return self.tokeniser

    def part(self, rows: Rows | SpanRows) -> Part:
        """Encode other rows of the same task in the same way."""
        return _part(rows, self.tokeniser, self.length, self.types)


def prepare(task: Task, card: Card, length: int, tokeniser: Tokeniser | None = None) -> Prepared:
    """Encode the training and validation rows of a task for a card, in at most `length` tokens a row.

    Without a tokeniser, one is trained on the training rows, with at most as many tokens as the card has room for.
    What was prepared is kept in memory, and used again for every card that reads the same tokens.
    """
    _refuse_unreadable(task, card)
    embedding = card.stacks[0].embedding
    if isinstance(embedding, PatchEmbedding):
        return _images(task, embedding)
    found = tokeniser_for(task, card, tokeniser)
    return _prepared(task, _row_digests(task), _Kept(found.digest, found), *_limits(card, found, length))


def tokeniser_for(task: Task, card: Card, tokeniser: Tokeniser | None = None) -> Tokeniser:
    """Give the tokeniser of a task of text: the one that is given, or one trained on the training rows for a card."""
    _refuse_unreadable(task, card)
    # texts that are written have to come back as they were: in upper and lower case, and with their spaces
    trained = train_subwords if task.kind == "seq2seq-lm" else train_wordpiece
    return tokeniser or trained(task.search_view().train, _room(card))


def positions(card: Card) -> int:
    """Give the most tokens that a card reads."""
    return min(table.length for table in _tables(card))


def _refuse_unreadable(task: Task, card: Card) -> None:
    reads = _READS[card.stacks[0].embedding.TYPE]
    has = "images" if task.kind == "image-classification" else "text"
    if has != reads:
        raise IllegalInput(f"the task {task.name} has {has}, but this card reads {reads}")


def cut_rows(prepared: Prepared, card: Card) -> Cut | None:
    """Count the training rows that are cut; None for images and for texts that are divided without loss."""
    examples = prepared.train.examples
    if not isinstance(examples, Encoded) or examples.uncut is None:
        return None
    longer = int((examples.uncut > prepared.length).sum())
    return Cut(
        prepared.length,
        len(examples.uncut),
        longer,
        int(examples.uncut.max(initial=0)),
        positions(card),
        prepared.train.windows is not None,
    )


def usual_length(task: Task, card: Card, most: int, tokeniser: Tokeniser | None = None, least: int = LEAST) -> int:
    """Give a length that covers 95 % of the training rows: from `least` to `most`, and no more than a card reads.

    Texts without labels are divided into pieces, and lose nothing by any length; images have none.
    """
    rows = task.search_view().train
    if isinstance(rows, ImageRows):
        return PIECES
    if isinstance(rows, PlainText):
        return min(PIECES, positions(card))
    sizes = uncut_sizes(rows, tokeniser_for(task, card, tokeniser))
    return min(max(covering(sizes), least), most, positions(card))


def encode_for(card: Card, rows: TextRows | PlainText, tokeniser: Tokeniser, length: int) -> Encoded:
    """Encode rows of text for a card, in at most `length` tokens a row, and never in what the card cannot read."""
    length, types = _limits(card, tokeniser, length)
    return _typed(encode_rows(rows, tokeniser, length), types)


def _limits(card: Card, tokeniser: Tokeniser, length: int) -> tuple[int, int]:
    """Give how many tokens of a row, and how many kinds of sentences, a card can tell apart."""
    if tokeniser.size > (room := _room(card)):
        raise IllegalInput(f"the tokeniser has {tokeniser.size:,} tokens, but the card's table has room for {room:,}")
    return min(length, positions(card)), _tables(card)[0].types


def _room(card: Card) -> int:
    return min(table.vocabulary for table in _tables(card))


def _tables(card: Card) -> list[TokenEmbedding]:
    return [stack.embedding for stack in card.stacks if isinstance(stack.embedding, TokenEmbedding)]


@dataclass(frozen=True)
class _Kept:
    """A tokeniser that equals another when their digests do."""

    digest: str
    tokeniser: Tokeniser = field(compare=False)


@remember
def _row_digests(task: Task) -> tuple[str, str]:
    view = task.search_view()
    return view.train.digest, view.validation.digest


@lru_cache(maxsize=16)
def _prepared(task: Task, _: tuple[str, str], kept: _Kept, length: int, types: int) -> Prepared:
    """Encode what was not encoded before; tasks of the same files are equal even where a file has changed meanwhile."""
    view = task.search_view()
    train, validation = (_part(rows, kept.tokeniser, length, types) for rows in (view.train, view.validation))
    return Prepared(task, kept.tokeniser, length, types, train, validation)


def _part(rows: Rows | SpanRows, tokeniser: Tokeniser | None, length: int, types: int) -> Part:
    if isinstance(rows, ImageRows):
        return Part(rows, rows)
    assert tokeniser is not None
    if isinstance(rows, SpanRows):
        windows = encode_spans(rows, tokeniser, length)
        return Part(rows, _typed(windows.encoded, types), windows)
    return Part(rows, _typed(encode_rows(rows, tokeniser, length), types))


def _typed(encoded: Encoded, types: int) -> Encoded:
    """Tell apart no more sentences than the card does."""
    values = np.minimum(encoded.types.values, max(types - 1, 0))
    return replace(encoded, types=Ragged(values, encoded.types.offsets))


def _images(task: Task, embedding: PatchEmbedding) -> Prepared:
    view = task.search_view()
    wanted = (embedding.channels, embedding.image)
    found = view.train.pixels.shape[1:3]
    if found != wanted:
        raise IllegalInput(
            f"the images of {task.name} have {found[0]} channels and {found[1]} pixels a side; the card reads "
            f"{wanted[0]} channels and {wanted[1]} pixels"
        )
    return Prepared(task, None, 0, 0, Part(view.train, view.train), Part(view.validation, view.validation))
