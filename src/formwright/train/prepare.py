"""From a task to arrays that a card can be trained on."""

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from formwright.arch.card import Card
from formwright.arch.layers import PatchEmbedding, TokenEmbedding
from formwright.core.errors import IllegalInput
from formwright.core.remember import remember
from formwright.tasks.encode import Encoded, Ragged, encode_rows
from formwright.tasks.row_length import LEAST, PIECES, Cut, covering, uncut_sizes
from formwright.tasks.rows import ImageRows, PlainText, Rows, SpanRows, TextRows
from formwright.tasks.span_windows import Windows, encode_spans
from formwright.tasks.task import Task
from formwright.tasks.tokeniser import Tokeniser, train_subwords, train_wordpiece
from formwright.train.streams import Examples

_READS = {"tokens": "text", "patches": "images", "frames": "frames"}  # by the type of an embedding


@dataclass(frozen=True, eq=False)
class PreparedRows:
    """Some rows of a task and their arrays; `windows` says which question each row of a span task belongs to."""

    rows: Rows | SpanRows
    examples: Examples
    windows: Windows | None = None


@dataclass(frozen=True, eq=False)
class Prepared:
    """The training and validation rows of a task as arrays; `tokeniser` is None for images.

    `beams` is the number of beams when a model that generates text is evaluated.
    """

    task: Task
    tokeniser: Tokeniser | None
    length: int
    types: int
    train: PreparedRows
    validation: PreparedRows
    beams: int = 1

    @property
    def digests(self) -> tuple[str, str, str | None]:
        """Return the digests of the training rows, of the validation rows and of the tokeniser."""
        return (*_row_digests(self.task), None if self.tokeniser is None else self.tokeniser.digest)

    @property
    def text_tokeniser(self) -> Tokeniser:
        """Return the tokeniser of a task that has text."""
        assert self.tokeniser is not None, f"{self.task.name} has no text"
        return self.tokeniser

    def part(self, rows: Rows | SpanRows) -> PreparedRows:
        """Encode other rows of the same task in the same way."""
        return _part(rows, self.tokeniser, self.length, self.types)


def prepare(task: Task, card: Card, length: int, tokeniser: Tokeniser | None = None) -> Prepared:
    """Encode the training and validation rows of a task for a card, in at most `length` tokens a row.

    Without a tokeniser, one is trained on the training rows, with at most as many tokens as the card has room for.
    The result is cached in memory for every card that reads the same tokens.
    """
    _check_input_kind(task, card)
    embedding = card.stacks[0].embedding
    if isinstance(embedding, PatchEmbedding):
        return _images(task, embedding)
    found = tokeniser_for(task, card, tokeniser)
    return _prepared(task, _row_digests(task), found, *_limits(card, found, length))


def tokeniser_for(task: Task, card: Card, tokeniser: Tokeniser | None = None) -> Tokeniser:
    """Return the given tokeniser, or one trained on the training rows that fits a card."""
    _check_input_kind(task, card)
    # generated texts must keep upper and lower case and their spaces
    trained = train_subwords if task.kind == "seq2seq-lm" else train_wordpiece
    return tokeniser or trained(task.search_view().train, _room(card))


def positions(card: Card) -> int:
    """Return the maximum number of tokens of a card."""
    return min(table.length for table in _tables(card))


def _check_input_kind(task: Task, card: Card) -> None:
    reads = _READS[card.stacks[0].embedding.TYPE]
    has = "images" if task.kind == "image-classification" else "text"
    if has != reads:
        raise IllegalInput(f"the task {task.name} has {has}, but this card reads {reads}")


def cut_rows(prepared: Prepared, card: Card) -> Cut | None:
    """Count the training rows that are truncated; None for images and for texts that are divided without loss."""
    examples = prepared.train.examples
    if not isinstance(examples, Encoded) or examples.uncut is None:
        return None
    uncut, windows = examples.uncut, prepared.train.windows is not None
    longer, longest = int((uncut > prepared.length).sum()), int(uncut.max(initial=0))
    return Cut(prepared.length, len(uncut), longer, longest, positions(card), windows)


def usual_length(task: Task, card: Card, most: int, tokeniser: Tokeniser | None = None, least: int = LEAST) -> int:
    """Return a length that covers 95 % of the training rows: from `least` to `most`, and at most what a card reads.

    Texts without labels are divided into pieces, so no length loses tokens; images have no length.
    """
    rows = task.search_view().train
    if isinstance(rows, ImageRows):
        return PIECES
    if isinstance(rows, PlainText):
        return min(PIECES, positions(card))
    sizes = uncut_sizes(rows, tokeniser_for(task, card, tokeniser))
    return min(max(covering(sizes), least), most, positions(card))


def encode_for(card: Card, rows: TextRows | PlainText, tokeniser: Tokeniser, length: int) -> Encoded:
    """Encode rows of text within `length` tokens per row and the limits of a card."""
    length, types = _limits(card, tokeniser, length)
    return _typed(encode_rows(rows, tokeniser, length), types)


def _limits(card: Card, tokeniser: Tokeniser, length: int) -> tuple[int, int]:
    """Return the number of tokens and of token types that a card reads."""
    if tokeniser.size > (room := _room(card)):
        raise IllegalInput(f"the tokeniser has {tokeniser.size:,} tokens, but the card's table has room for {room:,}")
    return min(length, positions(card)), _tables(card)[0].types


def _room(card: Card) -> int:
    return min(table.vocabulary for table in _tables(card))


def _tables(card: Card) -> list[TokenEmbedding]:
    return [stack.embedding for stack in card.stacks if isinstance(stack.embedding, TokenEmbedding)]


@remember
def _row_digests(task: Task) -> tuple[str, str]:
    view = task.search_view()
    return view.train.digest, view.validation.digest


@lru_cache(maxsize=16)
def _prepared(task: Task, _: tuple[str, str], tokeniser: Tokeniser, length: int, types: int) -> Prepared:
    """Encode the rows; the digests are part of the cache's key because the files of equal tasks may have changed."""
    view = task.search_view()
    train, validation = (_part(rows, tokeniser, length, types) for rows in (view.train, view.validation))
    return Prepared(task, tokeniser, length, types, train, validation)


def _part(rows: Rows | SpanRows, tokeniser: Tokeniser | None, length: int, types: int) -> PreparedRows:
    if isinstance(rows, ImageRows):
        return PreparedRows(rows, rows)
    assert tokeniser is not None
    if isinstance(rows, SpanRows):
        windows = encode_spans(rows, tokeniser, length)
        return PreparedRows(rows, _typed(windows.encoded, types), windows)
    return PreparedRows(rows, _typed(encode_rows(rows, tokeniser, length), types))


def _typed(encoded: Encoded, types: int) -> Encoded:
    """Limit token types to those of the card."""
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
    train, validation = (PreparedRows(rows, rows) for rows in (view.train, view.validation))
    return Prepared(task, None, 0, 0, train, validation)
