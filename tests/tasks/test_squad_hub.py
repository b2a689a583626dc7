import pickle
import sys
from typing import Any

import pytest
from tests.tasks.fake_datasets import Feature, Give, Split, fake_library  # noqa: F401  a fixture

from formwright.core.errors import IllegalInput, MissingExtra
from formwright.tasks import load_task
from formwright.tasks.test_split import open_test

COLUMNS = ("id", "title", "context", "question", "answers")


def split(titles: str, impossible: int = 0) -> Split:
    """Make two questions about each article; the first so many have no answer."""
    names = [title for title in titles for _ in range(2)]
    answers: list[Any] = [{"text": [name], "answer_start": [4]} for name in names]
    answers[:impossible] = [{"text": [], "answer_start": []}] * impossible
    columns = {
        "id": [str(row) for row in range(len(names))],
        "title": list(names),
        "context": [f"Did {name} write it?" for name in names],
        "question": [f"Who {row}?" for row in range(len(names))],
        "answers": answers,
    }
    return Split({name: Feature("string") for name in COLUMNS}, columns)


def test_squad_is_fetched_when_rows_are_needed_and_divided_by_article(give: Give) -> None:
    asked = give({"train": split("ABC"), "validation": split("DEFGD")})
    task = pickle.loads(pickle.dumps(load_task("squad")))
    assert asked == []
    view, test = task.search_view(), open_test(task)
    assert asked == [("rajpurkar/squad", None)]
    assert (task.name, task.metrics, task.chance) == ("squad", ("span-f1", "exact"), 0.0)
    assert view.train.questions[2] == "Who 2?"
    assert view.train.answers[2] == (("B", 4),)
    assert (len(view.train), len(view.validation) + len(test)) == (6, 10)
    assert not set(view.validation.contexts) & set(test.contexts)
    assert "of split validation of rajpurkar/squad" in task.division


def test_version_2_keeps_what_cannot_be_answered(give: Give) -> None:
    asked = give({"train": split("ABC", impossible=2), "validation": split("DE", impossible=1)})
    task = load_task("squad_v2", official_dev=True)
    assert task.search_view().train.answers.count(()) == 2
    assert task.search_view().validation.answers[:2] == ((), (("D", 4),))
    assert asked == [("rajpurkar/squad_v2", None)]
    assert task.division == "all 4 questions of split validation of rajpurkar/squad_v2, and no test"
    assert task.chance is None


@pytest.mark.parametrize(
    ("column", "value", "told"),
    [
        ("question", None, "row 2: no text in"),
        ("answers", {"text": ["A"], "answer_start": [3]}, "row 2: the answer 'A' does not stand at character 3"),
        ("answers", {"text": ["A"], "answer_start": []}, "row 2: expected 'answers' to hold equally many"),
        ("answers", None, "row 2: expected 'answers'"),
    ],
)
def test_rows_that_cannot_be_are_told(column: str, value: Any, told: str, give: Give) -> None:
    train = split("ABC")
    train.columns[column][1] = value
    give({"train": train, "validation": split("DE")})
    with pytest.raises(IllegalInput, match=f"split train of rajpurkar/squad, {told}"):
        load_task("squad").search_view()


def test_what_is_missing_is_named(give: Give) -> None:
    give({"train": split("ABC")})
    with pytest.raises(IllegalInput, match="rajpurkar/squad has no split 'validation'; it has train"):
        load_task("squad").search_view()
    bare = split("DE")
    del bare.features["context"]
    give({"train": split("ABC"), "validation": bare})
    with pytest.raises(IllegalInput, match="split validation of rajpurkar/squad: no column called 'context'"):
        load_task("squad").search_view()
    give({"train": split("ABC"), "validation": split("")})
    with pytest.raises(IllegalInput, match="holds no questions"):
        load_task("squad").search_view()
    give(ConnectionError("no network"))
    with pytest.raises(IllegalInput, match="give the folder of its files with --data DIR"):
        load_task("squad").search_view()


def test_without_the_library_the_install_line_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(MissingExtra, match=r'pip install "formwright\[hub\]"'):
        load_task("squad")
