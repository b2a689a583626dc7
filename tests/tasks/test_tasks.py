import os
import subprocess
import sys
from pathlib import Path

import pytest

import formwright
from formwright.core.errors import UnknownName
from formwright.tasks import MINI_GLUE, TASKS, load_task
from formwright.tasks.metrics import METRICS

SOURCE = str(Path(formwright.__file__).parents[1])
HEAVY = """
import sys
from formwright.tasks import TASKS
[TASKS.get(name) for name in TASKS.names()]
print(*sys.modules)
"""
DIGEST = "from formwright.tasks import load_task\nprint(load_task('mini-glue/rte').search_view().train.digest)"


def run(code: str, **environment: str) -> str:
    variables = {**os.environ, "PYTHONPATH": SOURCE, **environment}
    done = subprocess.run([sys.executable, "-c", code], env=variables, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_nine_generated_tasks_and_four_more() -> None:
    assert len(MINI_GLUE) == 9
    others = {"pydoc/masked", "pydoc/causal", "digits", "translation"}
    assert set(TASKS.names()) == others | {f"mini-glue/{name}" for name in MINI_GLUE}


@pytest.mark.parametrize("name", TASKS.names())
def test_tasks_know_their_names_and_metrics(name: str) -> None:
    task = load_task(name)
    assert task.name == name
    assert task.about
    assert set(task.metrics) <= set(METRICS)


def test_an_unknown_task_names_the_nearest() -> None:
    with pytest.raises(UnknownName, match="Nearest: 'mini-glue/sst2'"):
        load_task("mini-glue/sst-2")


def test_naming_all_tasks_loads_neither_torch_nor_scikit_learn() -> None:
    assert not {"torch", "transformers", "datasets", "sklearn"} & set(run(HEAVY).split())


def test_rows_do_not_depend_on_the_process() -> None:
    assert len({run(DIGEST, PYTHONHASHSEED=seed) for seed in ("1", "2")}) == 1
