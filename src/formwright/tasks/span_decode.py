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
    """The best span of a context so far, in characters, and its score."""

    score: float = -np.inf
    start: int = 0
    end: int = 0


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

    There is one array of scores for each window; what exceeds the window's tokens is padding, and ignored. An answer
    has at most `longest` tokens. Where questions may be `unanswerable`, an answer is empty if the first token, which
    stands for none, exceeds the best span by more than `threshold` in every window.
    """
    if not len(start_scores) == len(end_scores) == len(windows):
        raise IllegalInput(f"got scores of {len(start_scores)} and {len(end_scores)} windows; there are {len(windows)}")
    best = [_Best()] * len(rows)
    null = np.full(len(rows), np.inf)
    for window, row in enumerate(windows.rows.tolist()):
        start, end = (np.asarray(scores[window], np.float64) for scores in (start_scores, end_scores))
        best[row] = max(best[row], _best_span(start, end, windows, window, longest), key=_score)
        null[row] = min(null[row], start[0] + end[0])
    texts = [context[found.start : found.end].strip() for context, found in zip(rows.contexts, best, strict=True)]
    if not unanswerable:
        return texts
    scores = np.array([found.score for found in best])
    return ["" if none else text for text, none in zip(texts, null > scores + threshold, strict=True)]


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
    return _Best(float(sums[first, further]), int(starts[span[0]]), int(ends[span[1]]))
