"""Whether rows are those that a study or a score began with, told by their content."""

from dataclasses import replace

import pytest

from formwright.tasks.contents import changes, contents
from formwright.tasks.rows import Splits, TextRows
from formwright.tasks.task import Task

TRAIN = TextRows((("a",), ("b",), ("c",)), (0, 1, 0))
HELD = TextRows((("d",), ("e",)), (0, 1))
TEST = TextRows((("f",), ("g",)), (1, 0))


def task(
    train: TextRows = TRAIN,
    held: TextRows = HELD,
    test: TextRows | None = TEST,
    labels: tuple[str, ...] = ("no", "yes"),
) -> Task:
    return Task("mine", "sequence-classification", "accuracy", lambda: Splits(train, held, test), labels=labels)


@pytest.mark.parametrize(
    ("now", "told"),
    [
        (task(), []),
        (task(replace(TRAIN, numbers=(4, 5, 6), source="moved.csv")), []),  # the same rows in another place
        (task(replace(TRAIN, texts=(("a",), ("b",), ("C",)))), ["training rows"]),
        (task(replace(TRAIN, labels=(0, 1, 1))), ["training rows"]),
        (task(held=replace(HELD, labels=(1, 0))), ["validation rows"]),
        (task(held=TextRows(HELD.texts[::-1], HELD.labels[::-1])), ["validation rows"]),
        (task(test=replace(TEST, labels=(1, 1))), ["test rows"]),
        (task(test=None), ["test rows"]),
        (task(labels=("yes", "no")), ["labels"]),
    ],
)
def test_a_change_of_one_cell_is_noticed_where_all_counts_stay(now: Task, told: list[str]) -> None:
    found = changes(contents(task()), contents(now))
    assert [line.partition(" (")[0] for line in found] == [f"the {name}" for name in told]


def test_a_change_of_counts_is_told_in_numbers() -> None:
    (found,) = changes(contents(task()), contents(task(held=TextRows((("d",),), (0,)))))
    assert "2 before, 1 now" in found
