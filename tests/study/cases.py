"""Studies of the toy problem: nothing is trained, and every score is known."""

import os
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from weakref import finalize

from formwright.core.records import Budget, History, Objective, Observation, Request, Trial
from formwright.search import make_searcher
from formwright.space import Space
from formwright.study.identity import own_name
from formwright.study.stop import Stop
from formwright.study.store import Event, Log, Store
from formwright.study.study import StudySetup
from formwright.study.worker import Worker
from formwright.testing.toy_problem import Toy, small

SEARCHERS = ("random", "regularized-evolution", "nsga2", "halving", "local")
ELSEWHERE = "another-machine/1/1"


class Crash(BaseException):
    """What no worker catches: the nearest thing to a kill within a process."""


@dataclass(frozen=True)
class Stepping:
    """Evaluate the toy problem in steps, as a training does; `before` may do something with each request first."""

    steps: int = 3
    seconds: float = 0.0
    before: Callable[[Request], None] = field(default=lambda _: None)

    def evaluate(self, request: Request, context: Any) -> Observation:
        self.before(request)
        for step in range(self.steps):
            time.sleep(self.seconds)
            context.after_step(step, 0.0)
        return Toy().evaluate(request)


@dataclass(frozen=True)
class Grouped(Stepping):
    """Evaluate several requests together, and note how many they were."""

    together: int = 4
    sizes: list[int] = field(default_factory=list)

    def evaluate_together(self, requests: Sequence[tuple[Request, Any]]) -> list[Observation]:
        self.sizes.append(len(requests))
        return [self.evaluate(request, context) for request, context in requests]


def toy_study(
    log: Log,
    folder: Path,
    searcher: str = "random",
    *,
    stop: Stop | int = 12,
    space: Space | None = None,
    objectives: Sequence[str] = ("accuracy:max", "params:min"),
    evaluator: Any = None,
    **rest: Any,
) -> StudySetup:
    space, wanted = space or small(), tuple(map(Objective.parse, objectives))
    stop = Stop(stop) if isinstance(stop, int) else stop
    method = make_searcher(searcher, space, wanted, trials=stop.trials, steps=27)
    return StudySetup(log, space, method, evaluator or Stepping(), wanted, stop, folder, **{"seed": 5, **rest})


def new_log(folder: Path, name: str = "one") -> Log:
    """Make a study in a file of its own, which is closed when nobody has the log any more."""
    store = Store.open(folder / f"{name}.db", create=True)
    store.create_study(name, {})
    log = store.study(name)
    finalize(log, store.close)
    return log


def begin(log: Log) -> None:
    """Write what a launcher writes first."""
    log.append("started", own_name(), {"begins": True})


def run(study: StudySetup, **rest: Any) -> str:
    begin(study.log)
    return Worker(study, **rest).run()


def outline(study: StudySetup) -> list[tuple[Any, ...]]:
    """List what has to be the same in two studies."""
    return [
        (trial.number, trial.request.card.digest, trial.request.budget, trial.request.parent, trial.state)
        + ((trial.observation.metrics,) if trial.observation else (trial.reason,))
        for trial in study.history().trials
    ]


def whole(folder: Path, searcher: str, trials: int, evaluator: Any = None) -> list[tuple[Any, ...]]:
    """Give the outline of a study that nobody disturbed."""
    study = toy_study(new_log(folder, "whole"), folder, searcher, stop=trials, evaluator=evaluator)
    run(study)
    return outline(study)


def kinds(log: Log, *wanted: str) -> list[Event]:
    """Read the events of some kinds."""
    return [event for event in log.read() if event.kind in wanted]


def a_dead_name() -> str:
    """Name a worker of this machine that runs no more: a process that began at another time."""
    machine, process, _ = own_name().rsplit("/", 2)
    return f"{machine}/{process}/{random.randrange(10)}"


def work_until_killed(path: str, folder: str, searcher: str, trials: int) -> None:
    """Go on with the study in a file, slowly enough to be killed anywhere."""
    with Store.open(path) as store:
        run(toy_study(store.study("one"), Path(folder), searcher, stop=trials, evaluator=Stepping(3, 0.004)))
    os._exit(0)


def finished(
    number: int, metrics: dict[str, float], steps: int | None = None, *, request: Request | None = None
) -> Trial:
    """Give a trial with these scores; its card is of no importance."""
    space = small()
    card = space.card(list(space.enumerate())[number])
    return Trial(number, request or Request(card, Budget(steps)), "finished", Observation(metrics))


def history(*scores: dict[str, float]) -> History:
    return History(tuple(finished(number, metrics) for number, metrics in enumerate(scores)))
