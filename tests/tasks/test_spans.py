import pytest

from formwright.core.errors import IllegalInput
from formwright.tasks.spans import SpanRows

ROWS = SpanRows(("who?", "why?"), ("Ann did.", "Ann did."), ((("Ann", 0), ("Ann did", 0)), ()))


def test_rows_are_counted_and_list_the_texts_of_their_answers() -> None:
    assert len(ROWS) == 2
    assert ROWS.texts == (("Ann", "Ann did"), ())
    assert not ROWS.answerable
    assert SpanRows(ROWS.questions[:1], ROWS.contexts[:1], ROWS.answers[:1]).answerable


def test_the_digest_is_that_of_the_content() -> None:
    assert ROWS.digest == SpanRows(ROWS.questions, ROWS.contexts, ROWS.answers).digest
    others = [
        SpanRows(("who?", "how?"), ROWS.contexts, ROWS.answers),
        SpanRows(ROWS.questions, ("Ann did.", "Ann did!"), ROWS.answers),
        SpanRows(ROWS.questions, ROWS.contexts, ((("Ann", 0),), ())),
    ]
    assert len({ROWS.digest, *(other.digest for other in others)}) == 4


@pytest.mark.parametrize("answer", [("Ann", 1), ("Bob", 0), ("", 0), (".", -1), ("did.", 99)])
def test_an_answer_that_stands_elsewhere_is_refused(answer: tuple[str, int]) -> None:
    with pytest.raises(IllegalInput, match="row 1"):
        SpanRows(ROWS.questions, ROWS.contexts, ((), (answer,)))


def test_columns_of_unequal_length_are_refused() -> None:
    with pytest.raises(IllegalInput, match="equally many"):
        SpanRows(("who?",), ("Ann did.",), ())
