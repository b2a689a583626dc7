import ast
from pathlib import Path

import pytest

import formwright
from formwright.core.errors import IllegalInput
from formwright.tasks.rows import PlainText, Splits
from formwright.tasks.task import Task
from formwright.tasks.test_split import open_test


def with_test() -> Splits[PlainText]:
    return Splits(PlainText(("a",)), PlainText(("b",)), PlainText(("c",)))


def without_test() -> Splits[PlainText]:
    return Splits(PlainText(("a",)), PlainText(("b",)), None, division="the dev set of 1 rows, whole")


def test_test_rows_are_opened_where_there_are_any() -> None:
    assert open_test(Task("toy", "masked-lm", "perplexity", with_test)) == PlainText(("c",))
    task = Task("toy", "masked-lm", "perplexity", without_test)
    with pytest.raises(IllegalInput, match=r"toy has no test rows: validation is the dev set of 1 rows, whole\. Load"):
        open_test(task)


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
