"""From questions and their texts to windows of tokens, each short enough for a model."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from formwright.core.errors import IllegalInput
from formwright.tasks.encode import Encoded, Ragged, frame, row_sizes
from formwright.tasks.spans import SpanRows
from formwright.tasks.tokeniser import Placed, Tokeniser

_QUESTION = 64  # tokens of a question that are read, as in BERT
_LEAST = 16  # tokens of a window


@dataclass(frozen=True, eq=False)
class Windows:
    """Rows of questions as windows of tokens; a long text has several that overlap.

    Labels of `encoded` are (windows, 2): the first and last token of the answer, or twice 0, the token that begins the
    row, where the window does not hold the whole answer. `rows` numbers the row of each window. `starts` and `ends` are
    the characters of the context where each token starts and ends, or -1 where it does not belong to the context.
    """

    encoded: Encoded
    rows: NDArray[np.int64]
    starts: Ragged
    ends: Ragged

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True)
class _Window:
    """The part `first` to `behind` of a context's tokens, after a question."""

    row: int
    question: list[int]
    context: Placed
    first: int
    behind: int


def encode_spans(rows: SpanRows, tokeniser: Tokeniser, length: int, overlap: int | None = None) -> Windows:
    """Encode questions and contexts as pairs of at most `length` tokens, special ones included.

    Windows of the same context share `overlap` tokens, a third of `length` unless given. Questions are cut after 64
    tokens, or where they would fill half a window.
    """
    overlap = usual_overlap(length) if overlap is None else overlap
    if length < _LEAST or not 0 <= overlap < length:
        raise IllegalInput(
            f"windows need at least {_LEAST} tokens and an overlap that is shorter; got {length} and {overlap}"
        )
    windows = list(_windows(rows, tokeniser, length, overlap))
    framed = [frame(_parts(window), tokeniser) for window in windows]
    labels = np.array([_label(window, rows, tokeniser) for window in windows], np.int64).reshape(-1, 2)
    tokens, types = (Ragged.of([row[place] for row in framed]) for place in (0, 1))
    firsts = [window for window in windows if not window.first]
    uncut = row_sizes([(window.question, window.context.ids) for window in firsts], tokeniser)
    encoded = Encoded(tokens, types, labels, pad=tokeniser.special.pad or 0, uncut=uncut)
    numbers = np.array([window.row for window in windows], np.int64)
    return Windows(encoded, numbers, *(_places(windows, tokeniser, side) for side in (0, 1)))


def usual_overlap(length: int) -> int:
    """Give the tokens that two windows of a context share."""
    return length // 3


def _windows(rows: SpanRows, tokeniser: Tokeniser, length: int, overlap: int) -> Iterator[_Window]:
    unique = list(dict.fromkeys(rows.contexts))  # many questions share a context
    contexts = dict(zip(unique, tokeniser.offsets(unique), strict=True))
    space = length - 2 - tokeniser.separators
    for row, ids in enumerate(tokeniser.encode(rows.questions)):
        question, context = ids[: min(_QUESTION, space // 2)], contexts[rows.contexts[row]]
        room = space - len(question)
        step = max(room - overlap, 1)
        last = max(len(context.ids) - room, 0)  # where a window starts that reaches the end
        for first in range(0, last + step, step):
            yield _Window(row, question, context, first, min(first + room, len(context.ids)))


def _parts(window: _Window) -> tuple[list[int], list[int]]:
    return window.question, window.context.ids[window.first : window.behind]


def _before(window: _Window, tokeniser: Tokeniser) -> int:
    """Count the tokens of a window before its context."""
    return 1 + len(window.question) + tokeniser.separators


def _label(window: _Window, rows: SpanRows, tokeniser: Tokeniser) -> tuple[int, int]:
    answers = rows.answers[window.row]
    if not answers:
        return 0, 0
    text, start = answers[0]
    first, last = _tokens_of(window.context.places, start, start + len(text))
    if not window.first <= first <= last < window.behind:
        return 0, 0
    shift = _before(window, tokeniser) - window.first
    return first + shift, last + shift


def _tokens_of(places: Sequence[tuple[int, int]], start: int, end: int) -> tuple[int, int]:
    """Give the first and last token that hold characters of a span; the last is the smaller where none does."""
    first = bisect_right(places, start, key=lambda place: place[1])
    return first, bisect_left(places, end, key=lambda place: place[0]) - 1


def _places(windows: Sequence[_Window], tokeniser: Tokeniser, side: int) -> Ragged:
    return Ragged.of(
        [
            [-1] * _before(window, tokeniser)
            + [place[side] for place in window.context.places[window.first : window.behind]]
            + [-1]
            for window in windows
        ]
    )
