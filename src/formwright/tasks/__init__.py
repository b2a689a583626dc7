"""What models are trained and judged on, by name; other packages add theirs by an entry point."""

from formwright.core.registry import Registry
from formwright.tasks.task import Task

_HERE = "formwright.tasks"
MINI_GLUE = ("cola", "sst2", "mrpc", "stsb", "mnli", "rte", "qnli", "qqp", "wnli")

TASKS: Registry[Task] = Registry(
    "task",
    {
        **{f"mini-glue/{name}": f"{_HERE}.mini_glue.{name}:TASK" for name in MINI_GLUE},
        "pydoc/masked": f"{_HERE}.pydoc:MASKED",
        "pydoc/causal": f"{_HERE}.pydoc:CAUSAL",
        "digits": f"{_HERE}.digits:DIGITS",
        "translation": f"{_HERE}.translation:TRANSLATION",
    },
    "formwright.tasks",
    Task,
)


def load_task(name: str) -> Task:
    """Return the task of that name."""
    return TASKS.get(name)
