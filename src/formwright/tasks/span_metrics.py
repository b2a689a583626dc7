"""How answers in words are judged, as SQuAD 2.0 defines it."""

import re
import string
from collections import Counter
from collections.abc import Callable, Sequence

from formwright.core.errors import IllegalInput

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


def exact_match(predictions: Sequence[str], answers: Sequence[Sequence[str]]) -> float:
    """Give the share of predictions that equal one of the row's answers, apart from case, punctuation and articles.

    No answers, or none that is more than articles and punctuation, means that the empty prediction is right.
    """
    return _mean(exact_rows(predictions, answers))


def exact_rows(predictions: Sequence[str], answers: Sequence[Sequence[str]]) -> list[float]:
    """Give 1 for each row that is answered exactly, and 0 for the others."""
    return _by_row(_equal, predictions, answers)


def span_f1(predictions: Sequence[str], answers: Sequence[Sequence[str]]) -> float:
    """Give the mean F1 of the words that a prediction shares with the most similar of the row's answers.

    Case, punctuation and articles do not count. No answers, or none that is more than articles and punctuation, means
    that the empty prediction is right.
    """
    return _mean(span_f1_rows(predictions, answers))


def span_f1_rows(predictions: Sequence[str], answers: Sequence[Sequence[str]]) -> list[float]:
    """Give the F1 of each row."""
    return _by_row(_overlap, predictions, answers)


def _mean(scores: list[float]) -> float:
    return sum(scores) / len(scores)


def _by_row(
    compare: Callable[[list[str], list[str]], float], predictions: Sequence[str], answers: Sequence[Sequence[str]]
) -> list[float]:
    if len(predictions) != len(answers) or not len(predictions):
        raise IllegalInput(f"a metric needs equally many rows of each; got {len(predictions)} and {len(answers)}")
    return list(map(_best, [compare] * len(answers), predictions, answers))


def _best(compare: Callable[[list[str], list[str]], float], prediction: str, answers: Sequence[str]) -> float:
    words = _words(prediction)
    golden = [found for found in map(_words, answers) if found] or [[]]
    return max(compare(words, found) for found in golden)


def _words(text: str) -> list[str]:
    return _ARTICLES.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split()


def _equal(words: list[str], golden: list[str]) -> float:
    return float(words == golden)


def _overlap(words: list[str], golden: list[str]) -> float:
    if not words or not golden:
        return float(words == golden)
    shared = (Counter(words) & Counter(golden)).total()
    return 2 * shared / (len(words) + len(golden))
