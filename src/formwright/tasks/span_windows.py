"""Questions and their texts as windows of tokens, and from the scores of windows back to answers."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from formwright.core.errors import IllegalInput
from formwright.tasks.encode import Encoded, Ragged, frame, row_sizes
from formwright.tasks.rows import SpanRows
from formwright.tasks.tokeniser import Placed, Tokeniser

_QUESTION = 64  # tokens of a question that are read, as in BERT
_LEAST = 16  # tokens of a window


@dataclass(frozen=True, eq=False, kw_only=True)
class Windows(Encoded):
    """Rows of questions as windows of tokens; a long text has several that overlap.

    Labels are (windows, 2): the first and last token of the answer, or (0, 0), the `[CLS]` token, if the window does
    not contain the whole answer. `rows` is the row of each window. `starts` and `ends` are the characters of the
    context where each token starts and ends, -1 for tokens outside the context.
    """

    rows: NDArray[np.int64]
    starts: Ragged
    ends: Ragged


@dataclass(frozen=True)
class _SpanWindow:
    """The part `first` to `behind` of a context's tokens, after a question."""

    row: int
    question: list[int]
    context: Placed
    first: int
    behind: int


def encode_spans(rows: SpanRows, tokeniser: Tokeniser, length: int, overlap: int | None = None) -> Windows:
    """Encode questions and contexts as pairs of at most `length` tokens, special ones included.

    Windows of the same context share `overlap` tokens, by default a third of `length`. Questions are truncated to 64
    tokens or half a window.
    """
    overlap = usual_overlap(length) if overlap is None else overlap
    if length < _LEAST or not 0 <= overlap < length:
        raise IllegalInput(
            f"windows need at least {_LEAST} tokens and an overlap that is shorter; got {length} and {overlap}"
        )
    windows = list(_windows(rows, tokeniser, length, overlap))
    framed = [frame((one.question, one.context.ids[one.first : one.behind]), tokeniser) for one in windows]
    labels = np.array([_label(window, rows, tokeniser) for window in windows], np.int64).reshape(-1, 2)
    tokens, types = (Ragged.of([row[place] for row in framed]) for place in (0, 1))
    firsts = [window for window in windows if not window.first]
    uncut = row_sizes([(window.question, window.context.ids) for window in firsts], tokeniser)
    return Windows(
        tokens,
        types,
        labels,
        pad=tokeniser.special.pad or 0,
        uncut=uncut,
        rows=np.array([window.row for window in windows], np.int64),
        starts=_places(windows, tokeniser, 0),
        ends=_places(windows, tokeniser, 1),
    )


def usual_overlap(length: int) -> int:
    """Return the tokens that two windows of a context share."""
    return length // 3


def _windows(rows: SpanRows, tokeniser: Tokeniser, length: int, overlap: int) -> Iterator[_SpanWindow]:
    unique = list(dict.fromkeys(rows.contexts))  # many questions share a context
    contexts = dict(zip(unique, tokeniser.offsets(unique), strict=True))
    space = length - 2 - tokeniser.separators
    for row, ids in enumerate(tokeniser.encode(rows.questions)):
        question, context = ids[: min(_QUESTION, space // 2)], contexts[rows.contexts[row]]
        room = space - len(question)
        step = max(room - overlap, 1)
        last = max(len(context.ids) - room, 0)  # where a window starts that reaches the end
        for first in range(0, last + step, step):
            yield _SpanWindow(row, question, context, first, min(first + room, len(context.ids)))


def _before(window: _SpanWindow, tokeniser: Tokeniser) -> int:
    """Count the tokens of a window before its context."""
    return 1 + len(window.question) + tokeniser.separators


def _label(window: _SpanWindow, rows: SpanRows, tokeniser: Tokeniser) -> tuple[int, int]:
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
    """Return the first and last token that hold characters of a span; the last is the smaller where none does."""
    first = bisect_right(places, start, key=lambda place: place[1])
    return first, bisect_left(places, end, key=lambda place: place[0]) - 1


def _places(windows: Sequence[_SpanWindow], tokeniser: Tokeniser, side: int) -> Ragged:
    return Ragged.of(
        [
            [-1] * _before(window, tokeniser)
            + [place[side] for place in window.context.places[window.first : window.behind]]
            + [-1]
            for window in windows
        ]
    )


Scores = Sequence[NDArray[np.floating]]


@dataclass(frozen=True)
class _Best:
    """The best span of a context so far, in characters, and its score; `total` is the log of the sum of all spans."""

    score: float = -np.inf
    start: int = 0
    end: int = 0
    total: float = -np.inf


def answers_with_probability(
    start_scores: Scores,
    end_scores: Scores,
    windows: Windows,
    rows: SpanRows,
    unanswerable: bool = False,
    longest: int = 30,
    threshold: float = 0.0,
) -> list[tuple[str, float]]:
    """Return the answer to each row, and its probability among all that were possible.

    The answer is the part of the context whose first and last token have the highest sum of scores.

    There is one array of scores per window; scores of padding are ignored. An answer has at most `longest` tokens. If
    questions may be `unanswerable`, an answer is empty if the score of the first token, which stands for no answer,
    exceeds that of the best span by more than `threshold` in every window.
    """
    if not len(start_scores) == len(end_scores) == len(windows):
        raise IllegalInput(f"got scores of {len(start_scores)} and {len(end_scores)} windows; there are {len(windows)}")
    best = [_Best()] * len(rows)
    null, total = np.full(len(rows), np.inf), np.full(len(rows), -np.inf)
    for window, row in enumerate(windows.rows.tolist()):
        start, end = (np.asarray(scores[window], np.float64) for scores in (start_scores, end_scores))
        found = _best_span(start, end, windows, window, longest)
        best[row] = max(best[row], found, key=lambda one: one.score)
        null[row] = min(null[row], start[0] + end[0])
        total[row] = np.logaddexp(total[row], found.total)
    texts = [context[found.start : found.end].strip() for context, found in zip(rows.contexts, best, strict=True)]
    scores = np.array([found.score for found in best])
    if unanswerable:
        none = null > scores + threshold
        total = np.logaddexp(total, null)
        texts = ["" if empty else text for text, empty in zip(texts, none, strict=True)]
        scores = np.where(none, null, scores)
    shares, possible = np.zeros(len(rows)), np.isfinite(scores)  # an empty text has no span
    shares[possible] = np.exp(scores[possible] - total[possible])
    return list(zip(texts, shares.tolist(), strict=True))


def _best_span(
    start: NDArray[np.float64], end: NDArray[np.float64], windows: Windows, window: int, longest: int
) -> _Best:
    starts, ends = windows.starts[window], windows.ends[window]
    if min(len(start), len(end)) < len(starts):
        raise IllegalInput(f"window {window} has {len(starts)} tokens, but only {min(len(start), len(end))} scores")
    inside = np.flatnonzero(starts >= 0)  # without gaps, since a context is one piece
    if not len(inside):
        return _Best()
    # (first tokens, tokens from there on): row i holds the scores of the spans that start at i
    later = sliding_window_view(np.concatenate((end[inside], np.full(longest - 1, -np.inf))), longest)
    sums = start[inside][:, None] + later
    first, further = divmod(int(sums.argmax()), longest)
    span = inside[first], inside[first + further]
    total = float(np.logaddexp.reduce(sums, axis=None))
    return _Best(float(sums[first, further]), int(starts[span[0]]), int(ends[span[1]]), total)
