"""From a model's scores of first and last tokens to answers."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from formwright.core.errors import IllegalInput
from formwright.tasks.spans import SpanRows
from formwright.tasks.windows import Windows

Scores = Sequence[NDArray[np.floating]]


@dataclass(frozen=True)
class _Best:
    """The best span of a context so far, in characters, and its score; `total` is the log of the sum of all spans."""

    score: float = -np.inf
    start: int = 0
    end: int = 0
    total: float = -np.inf


def decode_spans(
    start_scores: Scores,
    end_scores: Scores,
    windows: Windows,
    rows: SpanRows,
    unanswerable: bool = False,
    longest: int = 30,
    threshold: float = 0.0,
) -> list[str]:
    """Give the answer to each row: the part of its context whose first and last token have the highest sum of scores.

    The arguments are those of `answers_with_probability`.
    """
    found = answers_with_probability(start_scores, end_scores, windows, rows, unanswerable, longest, threshold)
    return [text for text, _ in found]


def answers_with_probability(
    start_scores: Scores,
    end_scores: Scores,
    windows: Windows,
    rows: SpanRows,
    unanswerable: bool = False,
    longest: int = 30,
    threshold: float = 0.0,
) -> list[tuple[str, float]]:
    """Give the answer to each row, and its probability among all that were possible.

    There is one array of scores for each window; what exceeds the window's tokens is padding, and ignored. An answer
    has at most `longest` tokens. Where questions may be `unanswerable`, an answer is empty if the first token, which
    stands for none, exceeds the best span by more than `threshold` in every window.
    """
    if not len(start_scores) == len(end_scores) == len(windows):
        raise IllegalInput(f"got scores of {len(start_scores)} and {len(end_scores)} windows; there are {len(windows)}")
    best = [_Best()] * len(rows)
    null, total = np.full(len(rows), np.inf), np.full(len(rows), -np.inf)
    for window, row in enumerate(windows.rows.tolist()):
        start, end = (np.asarray(scores[window], np.float64) for scores in (start_scores, end_scores))
        found = _best_span(start, end, windows, window, longest)
        best[row] = max(best[row], found, key=_score)
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


def _score(found: _Best) -> float:
    return found.score


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
