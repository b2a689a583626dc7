from formwright.tasks import FROM_DATA, TASKS
from formwright.tasks.catalogue import catalogue
from formwright.tasks.metrics import METRICS


def test_every_task_is_listed_once_with_what_it_needs() -> None:
    entries = catalogue()
    assert [entry.name for entry in entries] == [*TASKS.names(), *FROM_DATA]
    assert {entry.rows for entry in entries if entry.name in TASKS.names()} == {"builtin"}
    assert all(entry.rows.startswith("--data DIR") for entry in entries if entry.name in FROM_DATA)
    assert all(entry.about and entry.metric in METRICS for entry in entries)
