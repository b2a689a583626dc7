import string
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formwright.core.errors import IllegalInput
from formwright.tasks.span_metrics import exact_match, span_f1

WORDS = st.sampled_from(
    ["the", "a", "An", "Cat", "cat", "dog.", "U.S.", "--", "10%", "naïve", "anthem", "a-b", "\t", ""]
)
TEXTS = st.lists(WORDS, max_size=6).map(" ".join)
ROWS = st.lists(st.tuples(TEXTS, st.lists(TEXTS, max_size=3)), min_size=1, max_size=5)


def normalised(text: str) -> list[str]:
    """Follow the definition letter by letter: lower case, no punctuation, no articles, words between blanks."""
    letters = [letter for letter in text.lower() if letter not in string.punctuation]
    words, word = [], ""
    for letter in [*letters, " "]:
        # an article is bounded by anything but letters, digits and underscores
        if letter.isalnum():
            word += letter
            continue
        words.append("" if word in ("a", "an", "the") else word)
        words.append(letter)
        word = ""
    return "".join(words).split()


def reference(prediction: str, answers: Sequence[str]) -> tuple[float, float]:
    golden = [answer for answer in answers if normalised(answer)] or [""]
    exact = [float(normalised(prediction) == normalised(answer)) for answer in golden]
    return max(exact), max(similarity(normalised(prediction), normalised(answer)) for answer in golden)


def similarity(predicted: list[str], golden: list[str]) -> float:
    if not predicted or not golden:
        return float(predicted == golden)
    left, hits = list(golden), 0
    for word in predicted:
        if word in left:
            left.remove(word)
            hits += 1
    if not hits:
        return 0.0
    precision, recall = hits / len(predicted), hits / len(golden)
    return 2 * precision * recall / (precision + recall)


@given(ROWS)
def test_both_follow_the_definition(rows) -> None:
    predictions, answers = [row[0] for row in rows], [row[1] for row in rows]
    expected = [reference(*row) for row in rows]
    assert exact_match(predictions, answers) == pytest.approx(sum(exact for exact, _ in expected) / len(rows))
    assert span_f1(predictions, answers) == pytest.approx(sum(score for _, score in expected) / len(rows))


@pytest.mark.parametrize(
    ("prediction", "answers", "exact", "score"),
    [
        ("The Eiffel-Tower!", ("eiffeltower",), 1, 1),
        ("Eiffel Tower", ("eiffel tower in Paris",), 0, 2 * 2 / 6),
        ("in 1066", ("1066", "in the year 1066"), 0, 2 * 2 / 5),
        ("the the cat cat", ("cat",), 0, 2 / 3),
        ("anthem", ("them",), 0, 0),
        ("", (), 1, 1),
        ("the", (), 1, 1),
        ("cat", (), 0, 0),
        ("", ("cat",), 0, 0),
        ("", ("the", "cat"), 0, 0),  # an answer that is only an article does not count beside another
        ("", ("the",), 1, 1),
    ],
)
def test_cases_by_hand(prediction: str, answers: tuple[str, ...], exact: float, score: float) -> None:
    assert exact_match([prediction], [answers]) == exact
    assert span_f1([prediction], [answers]) == pytest.approx(score)


@pytest.mark.parametrize("metric", [exact_match, span_f1])
@pytest.mark.parametrize(("predictions", "answers"), [([], []), (["a"], []), (["a"], [("a",), ("b",)])])
def test_rows_that_do_not_pair_are_refused(metric, predictions, answers) -> None:
    with pytest.raises(IllegalInput, match="equally many"):
        metric(predictions, answers)
