import gc
import pickle
from types import FunctionType, ModuleType

from formwright.tasks.rows import PlainText, Splits, View
from formwright.tasks.task import Task
from formwright.tasks.test_split import open_test

CALLS: list[str] = []


def splits() -> Splits[PlainText]:
    CALLS.append("made")
    return Splits(PlainText(("a",)), PlainText(("b",)), PlainText(("c",)))


def make() -> Task:
    return Task("toy", "masked-lm", "perplexity", splits, metrics=("accuracy",))


def test_rows_are_made_once_and_only_when_they_are_needed() -> None:
    CALLS.clear()
    task = make()
    assert not CALLS
    assert task.search_view() == task.search_view() == View(PlainText(("a",)), PlainText(("b",)))
    assert open_test(task) == PlainText(("c",))
    assert CALLS == ["made"]


def test_the_deciding_metric_is_reported() -> None:
    assert make().metrics == ("perplexity", "accuracy")


def test_a_task_travels_without_its_rows() -> None:
    task = make()
    bare = len(pickle.dumps(task))
    task.search_view()
    assert len(pickle.dumps(task)) == bare
    assert pickle.loads(pickle.dumps(task)) == task


def test_the_search_view_does_not_lead_to_the_test_rows() -> None:
    assert set(vars(make().search_view())) == {"train", "validation"}


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


def test_the_division_and_whether_there_is_a_test_are_told() -> None:
    assert (make().division, make().has_test) == ("", True)
