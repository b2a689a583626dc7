"""What the log of a study keeps of each of its runs: the options it was conducted with, and the data it saw."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from formwright.core.errors import IllegalInput
from formwright.study.config import TaskChoice
from formwright.study.events import DATA_WARNINGS
from formwright.study.identity import own_name
from formwright.study.log import Log
from formwright.tasks.contents import changes, contents
from formwright.tasks.task import Task

_RUN, _DATA = "run", "data"  # in the events that begin a run


@dataclass(frozen=True)
class RunOptions:
    """Say how a study is conducted: by how many workers, where, and whether a baseline is trained in the end."""

    workers: int = 2
    ray: str | None = None
    ray_cpus: float = 1.0
    ray_gpus: float = 0.0
    baseline: bool = True

    def changed(self, **given: Any) -> "RunOptions":
        """Replace what is given, which is what is not None."""
        return replace(self, **{name: value for name, value in given.items() if value is not None})


def begin_run(log: Log, options: RunOptions, task: Task, notes: Mapping[str, Any]) -> None:
    """Note that a run begins: with which options, on which data, and what else it notes."""
    warnings = [asdict(warning) for warning in task.warnings]
    data = {_DATA: contents(task), **({DATA_WARNINGS: warnings} if warnings else {})}
    log.append("started", own_name(), {"begins": True, _RUN: asdict(options), **data, **notes})


def last_options(log: Log) -> RunOptions:
    """Give the options of the last run, so that the next one is conducted alike."""
    kept = [event.data[_RUN] for event in log.read() if event.kind == "started" and _RUN in event.data]
    return RunOptions(**kept[-1]) if kept else RunOptions()


def refuse_changed_data(log: Log, choice: TaskChoice, task: Task) -> None:
    """Refuse a task whose rows differ from those that the study began with: scores of both cannot be compared."""
    kept = [event.data[_DATA] for event in log.read() if event.kind == "started" and _DATA in event.data]
    if kept and (found := changes(kept[0], contents(task))):
        where = choice.name if choice.data is None else f"{choice.name} in {choice.data}"
        raise IllegalInput(
            f"the data of {where} changed since the study {log.name} began: {', '.join(found)}. Scores on different "
            "rows cannot be compared: restore the data to resume this study, or start a new search with another --out"
        )
