"""From a task to arrays that a card can be trained on."""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from formwright.arch.card import Card
from formwright.arch.embeddings import Embedding
from formwright.core.errors import IllegalInput
from formwright.core.remember import remember
from formwright.core.rng import derive
from formwright.space.zoo import SPACES
from formwright.tasks.encode import Encoded, Ragged, encode_rows
from formwright.tasks.kind import kind_of
from formwright.tasks.preprocessor import Preprocessor
from formwright.tasks.row_length import LEAST, PIECES, Cut, covering, cut_by, uncut_sizes
from formwright.tasks.rows import PlainText, TextRows
from formwright.tasks.task import Task
from formwright.tasks.tokeniser import Tokeniser
from formwright.train.streams import Examples, KeptBatches

_WORDS = {"tokens": "text", "patches": "images"}  # what an embedding of that type reads


@dataclass(frozen=True, eq=False)
class PreparedRows:
    """Some rows of a task, the arrays that its kind makes of them, and their batches where these are kept."""

    rows: Any
    examples: Examples
    batches: KeptBatches | None = None


@dataclass(frozen=True, eq=False)
class Prepared:
    """The training and validation rows of a task as arrays; `tokeniser` is what made them, of text or of other rows.

    `beams` is the number of beams when a model that generates text is evaluated.
    """

    task: Task
    tokeniser: Tokeniser | Preprocessor | None
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
        assert isinstance(self.tokeniser, Tokeniser), f"{self.task.name} has no text"
        return self.tokeniser

    def part(self, rows: Any) -> PreparedRows:
        """Encode other rows of the same task in the same way."""
        return _part(rows, self.task, self.tokeniser, self.length, self.types)


def prepare(task: Task, card: Card, length: int, tokeniser: Tokeniser | Preprocessor | None = None) -> Prepared:
    """Encode the training and validation rows of a task for a card, in at most `length` tokens a row.

    Without a tokeniser, one is trained on the training rows, with at most as many tokens as the card has room for; rows
    without text have a preprocessor in its place, which is fitted to the training rows.
    The result is cached in memory for every card that reads the same tokens.
    """
    found = tokeniser_for(task, card, tokeniser)
    return _prepared(task, _row_digests(task), found, *_limits(card, found, length))


def tokeniser_for(task: Task, card: Card, tokeniser: Tokeniser | Preprocessor | None = None) -> Any:
    """Return the given tokeniser or preprocessor, or one for a card that is trained on the training rows.

    None if the examples are the rows themselves. Raise if the card cannot read the rows.
    """
    check_reads(task, card)
    kind, embedding = kind_of(task), card.stacks[0].embedding
    if kind.check is not None and (reason := kind.check(task.search_view().train, embedding)):
        raise IllegalInput(f"this card cannot read the rows of {task.name}: {reason}{_fitting_spaces(task)}")
    if tokeniser is not None:
        return tokeniser
    if kind.preprocessor is not None:  # what it reads does not depend on how wide a design is
        return _fitted(task, _row_digests(task), replace(embedding, width=1))
    return kind.train_tokeniser(task.search_view().train, _room(card)) if kind.has_tokens else None


def check_reads(task: Task, card: Card) -> None:
    """Raise if a card reads something else than the rows of a task, such as images instead of text."""
    if wrong := reads_otherwise(task, card):
        has, reads = wrong
        raise IllegalInput(f"the task {task.name} has {has}, but this card reads {reads}{_fitting_spaces(task)}")


def reads_otherwise(task: Task, card: Card) -> tuple[str, str] | None:
    """Name what a task has and what a card reads, where these differ."""
    kind, embedding = kind_of(task), card.stacks[0].embedding
    if kind.reads == embedding.TYPE:
        return None
    return _WORDS.get(kind.reads, kind.reads), _WORDS.get(embedding.TYPE, embedding.TYPE)


@lru_cache(maxsize=16)
def _fitted(task: Task, _: tuple[str, str], embedding: Embedding) -> Any:
    """Fit the preprocessor of a task once for all designs that read the same."""
    preprocessor = kind_of(task).preprocessor
    assert preprocessor is not None
    return preprocessor.fit(task.search_view().train, embedding)


def _fitting_spaces(task: Task) -> str:
    """Name the spaces whose designs read the rows of a task; empty for text, which most of them read."""
    kind, rows = kind_of(task), task.search_view().train
    if kind.has_tokens:
        return ""
    found = []
    for name in SPACES.names():
        space = SPACES.get(name)
        embedding = space.card(space.sample(derive(0, "fitting"))).stacks[0].embedding
        if kind.reads == embedding.TYPE and not (kind.check is not None and kind.check(rows, embedding)):
            found.append(name)
    return f". Spaces that read them: {', '.join(found)}" if found else ""


def positions(card: Card) -> int:
    """Return the maximum number of tokens of a card, 0 if it reads whole images."""
    lengths = [stack.embedding.most_tokens for stack in card.stacks]
    return min((length for length in lengths if length is not None), default=0)


def cut_rows(prepared: Prepared, card: Card) -> Cut | None:
    """Count the training rows that are truncated; None for images and for texts that are divided without loss."""
    return cut_by(kind_of(prepared.task), prepared.train.examples, prepared.length, positions(card))


def usual_length(task: Task, card: Card, most: int, tokeniser: Any = None, least: int = LEAST) -> int:
    """Return a length that covers 95 % of the training rows: from `least` to `most`, and at most what a card reads.

    Texts without labels are divided into pieces, so no length loses tokens; images have no length.
    """
    kind = kind_of(task)
    if not kind.cuts:
        return min(PIECES, positions(card) or PIECES)
    sizes = uncut_sizes(kind, task.search_view().train, tokeniser_for(task, card, tokeniser))
    return min(max(covering(sizes), least), most, positions(card))


def encode_for(card: Card, rows: TextRows | PlainText, tokeniser: Tokeniser, length: int) -> Encoded:
    """Encode rows of text within `length` tokens per row and the limits of a card."""
    length, types = _limits(card, tokeniser, length)
    return _typed(encode_rows(rows, tokeniser, length), types)


def _limits(card: Card, tokeniser: Any, length: int) -> tuple[int, int]:
    """Return the number of tokens and of token types that a card reads."""
    if not isinstance(tokeniser, Tokeniser):
        return min(length, positions(card)), 0
    if tokeniser.size > (room := _room(card)):
        raise IllegalInput(f"the tokeniser has {tokeniser.size:,} tokens, but the card's table has room for {room:,}")
    return min(length, positions(card)), card.token_tables[0].types


def _room(card: Card) -> int:
    return min(table.vocabulary for table in card.token_tables)


@remember
def _row_digests(task: Task) -> tuple[str, str]:
    view = task.search_view()
    return view.train.digest, view.validation.digest


@lru_cache(maxsize=16)
def _prepared(task: Task, _: tuple[str, str], tokeniser: Any, length: int, types: int) -> Prepared:
    """Encode the rows; the digests are part of the cache's key because the files of equal tasks may have changed."""
    view = task.search_view()
    train, validation = (_part(rows, task, tokeniser, length, types) for rows in (view.train, view.validation))
    return Prepared(task, tokeniser, length, types, train, validation)


def _part(rows: Any, task: Task, tokeniser: Any, length: int, types: int) -> PreparedRows:
    examples = kind_of(task).examples(rows, tokeniser, length)
    return PreparedRows(rows, _typed(examples, types) if isinstance(tokeniser, Tokeniser) else examples)


def _typed(encoded: Encoded, types: int) -> Encoded:
    """Limit token types to those of the card."""
    values = np.minimum(encoded.types.values, max(types - 1, 0))
    return replace(encoded, types=Ragged(values, encoded.types.offsets))
