"""What the log of a study keeps of each of its runs: its options, the data it saw, and when it was to stop."""

from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from typing import TYPE_CHECKING, Any

from formwright.core.errors import IllegalInput
from formwright.core.records import Objective
from formwright.pipeline.run import RunOptions
from formwright.pipeline.run_folder import Opened
from formwright.pipeline.task_choice import TaskChoice
from formwright.study.events import DATA_WARNINGS
from formwright.study.identity import own_name
from formwright.study.ledger import Clock, Ledger
from formwright.study.log import Log
from formwright.study.replay import Replay
from formwright.study.stop import Stop
from formwright.tasks.task import changes, contents

if TYPE_CHECKING:
    from formwright.tasks.task import Task

_RUN, _DATA = "run", "data"  # in the events that begin a run


def begin_run(log: Log, options: RunOptions, task: "Task | None", notes: Mapping[str, Any]) -> None:
    """Note that a run begins: with which options, on which data, and what else it notes."""
    data: dict[str, Any] = {}
    if task is not None:
        warnings = [asdict(warning) for warning in task.warnings]
        data = {_DATA: contents(task), **({DATA_WARNINGS: warnings} if warnings else {})}
    log.append("started", own_name(), {"begins": True, _RUN: asdict(options), **data, **notes})


def last_options(log: Log) -> RunOptions:
    """Give the options of the last run, so that the next one is conducted alike."""
    kept = [event.data[_RUN] for event in log.read() if event.kind == "started" and _RUN in event.data]
    known = {one.name for one in fields(RunOptions)}
    return RunOptions(**{name: value for name, value in kept[-1].items() if name in known}) if kept else RunOptions()


def refuse_changed_data(log: Log, choice: TaskChoice, task: "Task") -> None:
    """Refuse a task whose rows differ from those that the study began with: scores of both cannot be compared."""
    kept = [event.data[_DATA] for event in log.read() if event.kind == "started" and _DATA in event.data]
    if kept and (found := changes(kept[0], contents(task))):
        where = choice.name if choice.data is None else f"{choice.name} in {choice.data}"
        raise IllegalInput(
            f"the data of {where} changed since the study {log.name} began: {', '.join(found)}. Scores on different "
            "rows cannot be compared: restore the data to resume this study, or start a new search with another --out"
        )


def extended(opened: Opened, wishes: Mapping[str, Any]) -> Stop:
    """Give the end that a study has with further wishes, by the fields of `Stop`; a wish of None is none.

    A wish replaces the limit of its kind and, unless it is about failures alone, those limits that ended the study:
    it would end at once again. Less than what is done already is refused.
    """
    given = {name: value for name, value in wishes.items() if value is not None}
    if not given.keys() - {"failures"}:
        return replace(opened.search.stop, **given)
    replay, ledger = _so_far(opened)
    done = {"trials": len(replay.history.trials), "steps": ledger.spent.steps, "seconds": ledger.elapsed}
    for name, amount in done.items():
        if name in given and given[name] < amount:
            told = f"{amount:,.1f}" if isinstance(amount, float) else f"{amount:,}"
            raise IllegalInput(
                f"the study {opened.place.name} has {told} {name} already, more than the {given[name]:,} asked for; "
                "give at least as many"
            )
    objectives = [Objective.parse(text) for text in (*opened.search.objectives, *opened.search.limits)]
    over = opened.search.stop.reached(replay.history, ledger, objectives)
    changes: dict[str, Any] = dict.fromkeys(over) | given
    return replace(opened.search.stop, **changes)


def noted(stop: Stop) -> dict[str, Any]:
    """Give what the launcher notes when it begins, so that every worker stops at this end."""
    return {"stop": asdict(stop)}


def _so_far(opened: Opened) -> tuple[Replay, Ledger]:
    events, clock = opened.log.read(), Clock()
    replay = Replay(opened.space)
    replay.feed(events)
    clock.feed(events)
    return replay, replay.ledger(clock.elapsed(clock.last))
