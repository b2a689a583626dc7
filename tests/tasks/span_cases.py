"""Questions about generated texts, and scores that point at their answers."""

from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from formwright.tasks.rows import PlainText, SpanRows
from formwright.tasks.span_windows import Windows, answers_with_probability
from formwright.tasks.tokeniser import train_wordpiece

WORDS = ("low", "lower", "lowest", "new", "newer", "wide", "Café", "(1066)", "x-ray", "日本")
TOKENISER = train_wordpiece(PlainText((" ".join(WORDS), "lowest newest widest")), 80)


@st.composite
def span_rows(draw: st.DrawFn, longest: int = 6) -> SpanRows:
    """Draw a few questions whose answers, if any, are whole words."""
    rows = [draw(_row(longest)) for _ in range(draw(st.integers(1, 4)))]
    return SpanRows(*(tuple(column) for column in zip(*rows, strict=True)))


@st.composite
def _row(draw: st.DrawFn, longest: int) -> tuple[str, str, tuple[tuple[str, int], ...]]:
    question = " ".join(draw(st.lists(st.sampled_from(WORDS), max_size=12)))
    words = draw(st.lists(st.sampled_from(WORDS), max_size=60))
    if not words or draw(st.booleans()):
        return question, " ".join(words), ()
    first = draw(st.integers(0, len(words) - 1))
    text = " ".join(words[first : first + draw(st.integers(1, longest))])
    return question, " ".join(words), ((text, len(" ".join([*words[:first], ""]))),)


def pointing(windows: Windows, padding: int = 0) -> tuple[list[NDArray[np.float64]], list[NDArray[np.float64]]]:
    """Score the tokens of the labels 1 and all others 0; what stands in the padding is best of all."""
    columns = []
    for side in (0, 1):
        pairs = zip(windows.tokens.lengths, windows.labels[:, side], strict=True)
        scores = [(np.arange(length) == label).astype(np.float64) for length, label in pairs]
        columns.append([np.concatenate((row, np.full(padding, 9.0))) for row in scores])
    return columns[0], columns[1]


def decode_spans(*arguments: Any, **options: Any) -> list[str]:
    """Give the answers without their probabilities."""
    return [text for text, _ in answers_with_probability(*arguments, **options)]
