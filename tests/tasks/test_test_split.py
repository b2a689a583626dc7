import pytest

from formwright.core.errors import IllegalInput
from formwright.tasks.rows import PlainText, Splits
from formwright.tasks.task import Task
from formwright.tasks.test_split import open_test


def with_test() -> Splits[PlainText]:
    return Splits(PlainText(("a",)), PlainText(("b",)), PlainText(("c",)))


def without_test() -> Splits[PlainText]:
    return Splits(PlainText(("a",)), PlainText(("b",)), None, division="the dev set of 1 rows, whole")


def test_the_test_rows_are_opened() -> None:
    assert open_test(Task("toy", "masked-lm", "perplexity", with_test)) == PlainText(("c",))


def test_where_there_are_none_the_reason_is_told() -> None:
    task = Task("toy", "masked-lm", "perplexity", without_test)
    with pytest.raises(IllegalInput, match=r"toy has no test rows: validation is the dev set of 1 rows, whole\. Load"):
        open_test(task)
