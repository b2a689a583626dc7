"""What looks wrong with rows is counted, once for each kind of thing."""

import ast
import gc
import pickle
from dataclasses import replace
from pathlib import Path
from types import FunctionType, ModuleType

import numpy as np
import pytest

import formwright
from formwright.core.errors import IllegalInput
from formwright.tasks.rows import ImageRows, Label, PlainText, Splits, TextRows, View
from formwright.tasks.task import (
    DataWarning,
    Task,
    changes,
    class_counts,
    contents,
    data_warnings,
    first_rows,
    shortened,
)
from formwright.tasks.test_split import open_test

CALLS: list[str] = []


def splits() -> Splits[PlainText]:
    CALLS.append("made")
    return Splits(PlainText(("a",)), PlainText(("b",)), PlainText(("c",)))


def make() -> Task:
    return Task("toy", "masked-lm", "perplexity", splits, metrics=("accuracy",))


def test_the_search_view_leads_nowhere_else() -> None:
    task = make()
    test = open_test(task)
    reached, waiting = set[int](), [task.search_view()]
    while waiting:
        value = waiting.pop()
        if id(value) not in reached and not isinstance(value, type | ModuleType | FunctionType):
            reached.add(id(value))
            waiting += gc.get_referents(value)
    assert id(task.search_view().validation) in reached
    assert id(test) not in reached


def test_a_task_makes_its_rows_once_and_travels_without_them() -> None:
    CALLS.clear()
    task = make()
    assert not CALLS
    assert task.search_view() == task.search_view() == View(PlainText(("a",)), PlainText(("b",)))
    assert open_test(task) == PlainText(("c",))
    assert (CALLS, make().metrics) == (["made"], ("perplexity", "accuracy"))
    task = make()
    bare = len(pickle.dumps(task))
    task.search_view()
    assert (len(pickle.dumps(task)), pickle.loads(pickle.dumps(task))) == (bare, task)
    assert set(vars(make().search_view())) == {"train", "validation"}
    assert (make().division, make().has_test) == ("", True)


NAMES = ("no", "yes")


def rows(*pairs: tuple[str, Label], source: str = "file.csv") -> TextRows:
    return TextRows(tuple((text,) for text, _ in pairs), tuple(label for _, label in pairs), source=source)


PLENTY = rows(*((f"text {number}", number % 2) for number in range(20)))
HELD = rows(("other", 0), ("another", 1))


def look(splits: Splits[TextRows], names: tuple[str, ...] = NAMES) -> dict[str, DataWarning]:
    found = data_warnings(splits, names)
    assert len({warning.kind for warning in found}) == len(found)
    assert all(f"{warning.count:,}" in warning.message for warning in found if warning.kind != "shared-rows")
    return {warning.kind: warning for warning in found}


def test_good_rows_and_generated_rows_bring_no_warning() -> None:
    assert look(Splits(PLENTY, HELD, rows(("third", 1)))) == {}
    doubtful = rows(("", 0), ("", 1), source="")
    assert look(Splits(doubtful, doubtful, doubtful)) == {}


def test_rows_that_splits_share_are_counted() -> None:
    validation, test = rows(("text 3", 1), ("new", 0)), rows(("text 4", 0), ("text 5", 1), ("new", 0))
    found = look(Splits(PLENTY, validation, test))["shared-rows"]
    assert found.count == 4
    for words in ("1 of 2 validation rows", "2 of 3 test rows", "also in train", "also in validation"):
        assert words in found.message


def test_contradictions_and_empty_texts_are_counted() -> None:
    train = rows(*zip((text for (text,) in PLENTY.texts), PLENTY.labels, strict=True), ("text 1", 0), ("text 1", 1))
    found = look(Splits(train, rows(("text 2", 1)), None))
    assert found["contradictory-labels"].count == 5  # three times "text 1", twice "text 2"
    assert "2 texts" in found["contradictory-labels"].message
    pairs = TextRows((("a", "b"), ("a", " "), ("", "")), (0, 1, 0), source="file.csv")
    assert look(Splits(pairs, HELD, None))["empty-texts"].count == 2


@pytest.mark.parametrize("several", [False, True])
def test_classes_with_few_rows_are_named(several: bool) -> None:
    labels: list[Label] = [0] * 9 + [1] * 4 + [2] * 2
    if several:
        labels = [tuple(int(place == label) for place in range(4)) for label in labels if isinstance(label, int)]
    train = rows(*((f"text {number}", label) for number, label in enumerate(labels)))
    found = look(Splits(train, rows(("held out", train.labels[9])), None), ("many", "five", "two", "none at all"))
    assert found["rare-classes"].count == 2
    assert "'two' (2)" in found["rare-classes"].message
    assert "'none at all' (0)" in found["rare-classes"].message
    assert "five" not in found["rare-classes"].message


@pytest.mark.parametrize("name", ["NaN", "nan", "None", "null", ""])
def test_a_missing_value_is_no_class(name: str) -> None:
    found = look(Splits(PLENTY, HELD, None), ("no", name))["missing-value-class"]
    assert found.count == 11
    assert repr(name) in found.message


def test_many_rare_classes_are_not_all_named() -> None:
    train = rows(*((f"text {number}", number) for number in range(30)))
    found = look(Splits(train, HELD, None), tuple(f"class {number}" for number in range(30)))["rare-classes"]
    assert (found.count, "25 more" in found.message) == (30, True)
    assert class_counts([rows(("a", (1, 0, 1)), ("b", (0, 0, 1)))], 3) == {0: 1, 2: 2}


TRAIN = TextRows((("a",), ("b",), ("c",)), (0, 1, 0))
HELD_OUT = TextRows((("d",), ("e",)), (0, 1))
TEST = TextRows((("f",), ("g",)), (1, 0))


def task(
    train: TextRows = TRAIN,
    held: TextRows = HELD_OUT,
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
        (task(held=replace(HELD_OUT, labels=(1, 0))), ["validation rows"]),
        (task(held=TextRows(HELD_OUT.texts[::-1], HELD_OUT.labels[::-1])), ["validation rows"]),
        (task(test=replace(TEST, labels=(1, 1))), ["test rows"]),
        (task(test=None), ["test rows"]),
        (task(labels=("yes", "no")), ["labels"]),
    ],
)
def test_a_change_of_one_cell_is_noticed_where_all_counts_stay(now: Task, told: list[str]) -> None:
    found = changes(contents(task()), contents(now))
    assert [line.partition(" (")[0] for line in found] == [f"the {name}" for name in told]


def numbered_splits() -> Splits[PlainText]:
    return Splits(*(PlainText(tuple(words.split())) for words in ("a b c d", "e f g", "h i")), division="by hand")


TASK = Task("toy", "masked-lm", "perplexity", numbered_splits)


@pytest.mark.parametrize(("number", "left"), [(1, 1), (3, 3), (9, 4)])
def test_only_training_rows_become_fewer(number: int, left: int) -> None:
    task = shortened(TASK, number)
    assert task.search_view().train == PlainText(("a", "b", "c", "d")[:left])
    assert task.search_view().validation == TASK.search_view().validation
    assert open_test(task) == open_test(TASK)
    assert (task.name, task.division) == ("toy", "by hand")


def test_shortened_tasks_are_equal_and_travel() -> None:
    fewer = shortened(TASK, 2)
    assert fewer == shortened(TASK, 2) != shortened(TASK, 3)
    assert hash(fewer) == hash(shortened(TASK, 2))
    assert pickle.loads(pickle.dumps(fewer)).search_view() == fewer.search_view()
    rows = first_rows(ImageRows(np.zeros((3, 1, 2, 2), np.float32), np.arange(3)), 2)
    assert (rows.pixels.shape, rows.labels.tolist()) == ((2, 1, 2, 2), [0, 1])
    (found,) = changes(contents(task()), contents(task(held=TextRows((("d",),), (0,)))))
    assert "2 before, 1 now" in found


# --- test rows -------------------------------------------------------------------------------------------------------


def without_test() -> Splits[PlainText]:
    return Splits(PlainText(("a",)), PlainText(("b",)), None, division="the dev set of 1 rows, whole")


def test_a_task_without_test_rows_says_why() -> None:
    with pytest.raises(IllegalInput, match=r"toy has no test rows: validation is the dev set of 1 rows, whole\. Load"):
        open_test(Task("toy", "masked-lm", "perplexity", without_test))


def test_nothing_but_tasks_makes_the_rows_of_a_task() -> None:
    root = Path(formwright.__file__).parent
    users = set()
    sources = {path: path.read_text(encoding="utf-8") for path in root.rglob("*.py")}
    for path, source in sources.items():
        if "formwright.tasks" not in source:  # spaces split as well, but know no tasks
            continue
        for node in ast.walk(ast.parse(source)):
            named = isinstance(node, ast.Attribute) and node.attr in ("splits", "_made")
            if named or (isinstance(node, ast.keyword) and node.arg == "splits"):
                users.add(path.relative_to(root).parts[0])
    assert users == {"tasks"}
