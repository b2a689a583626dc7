import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formwright.tasks.metrics import METRICS, Metric

WORDS = ("a cat", "the cat sat here", "cat", "a dog sat on the mat", "")


@st.composite
def answered(draw: st.DrawFn) -> tuple[str, list, list]:
    """Draw a metric, and answers and truth of the kind that it judges."""
    name = draw(st.sampled_from(sorted(METRICS)))
    size = draw(st.integers(2, 30))

    def some(element: st.SearchStrategy) -> list:
        return draw(st.lists(element, min_size=size, max_size=size))

    if name in ("exact", "span-f1"):
        return name, some(st.sampled_from(WORDS)), some(st.lists(st.sampled_from(WORDS), max_size=2))
    if name in ("bleu", "same-text"):
        return name, some(st.sampled_from(WORDS)), some(st.sampled_from(WORDS[:-1]))
    if name in ("micro-f1", "macro-f1", "subset-accuracy"):
        flags = st.lists(st.integers(0, 1), min_size=3, max_size=3)
        return name, some(flags), some(flags)
    if name == "perplexity":
        return name, some(st.floats(0, 5)), some(st.integers(1, 9))
    element = st.integers(-20, 20) if name in ("pearson", "spearman") else st.integers(0, 3)
    return name, some(element), some(element)


@given(answered())
def test_every_row_once_is_the_metric_itself(given) -> None:
    name, predictions, truth = given
    rows = METRICS[name].by_row
    found = rows.scores(rows.table(predictions, truth), np.ones((1, len(truth))))
    assert found == pytest.approx([METRICS[name].compute(predictions, truth)], abs=1e-9)


@given(answered(), st.integers(0, 2**32))
def test_a_draw_is_the_metric_of_the_rows_that_were_drawn(given, seed: int) -> None:
    name, predictions, truth = given
    drawn = np.random.default_rng(seed).integers(len(truth), size=(3, len(truth)))
    counts = np.stack([np.bincount(rows, minlength=len(truth)) for rows in drawn]).astype(float)
    by_row = METRICS[name].by_row
    wanted = [METRICS[name].compute([predictions[i] for i in rows], [truth[i] for i in rows]) for rows in drawn]
    assert by_row.scores(by_row.table(predictions, truth), counts) == pytest.approx(wanted, abs=1e-9)


def test_a_metric_without_rows_of_its_own_is_resampled_draw_by_draw() -> None:
    several = Metric("both right", lambda guess, true: float((np.asarray(guess) == np.asarray(true)).all(1).mean()))
    table = several.by_row.table([[1, 0], [1, 1], [0, 0]], [[1, 0], [0, 1], [0, 0]])
    assert several.by_row.scores(table, np.array([[1.0, 1, 1], [0, 3, 0], [2, 0, 1]])).tolist() == [2 / 3, 0.0, 1.0]
