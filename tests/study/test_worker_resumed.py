import multiprocessing
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from tests.study.cases import (
    SEARCHERS,
    Crash,
    Stepping,
    a_dead_name,
    new_log,
    outline,
    run,
    toy_study,
    whole,
    work_until_killed,
)

from formwright.core.rng import derive
from formwright.search import make_searcher
from formwright.study.replay import history_as_of, read_asked
from formwright.study.store import Event, Log
from formwright.study.study import StudySetup
from formwright.study.worker import TrialInterrupted
from formwright.testing.toy_problem import small

TRIALS = 18


class Sometimes:
    """Raise an error now and then, at moments that a seed decides."""

    def __init__(self, error: type[BaseException], seed: int, share: float = 0.15) -> None:
        self._error, self._rng, self._share = error, derive(seed, "moments"), share
        self.times = 0

    def __call__(self, *_: Any) -> None:
        if self._rng.random() < self._share:
            self.times += 1
            raise self._error


def go_on(log: Log, folder: Path, searcher: str, error: type[BaseException], trials: int = TRIALS) -> StudySetup:
    """Run a study to its end with a new worker after each interruption."""
    sometimes = Sometimes(error, seed=len(searcher))
    while True:
        # nothing is kept from one worker to the next but the log
        study = toy_study(log, folder, searcher, stop=trials, evaluator=Stepping(3))
        try:
            run(study, name=a_dead_name(), between_steps=sometimes)
        except (TrialInterrupted, Crash):
            continue
        assert sometimes.times > 3
        return study


@pytest.mark.parametrize("error", [TrialInterrupted, Crash])
@pytest.mark.parametrize("searcher", SEARCHERS)
def test_an_interrupted_study_repeats_the_one_that_was_not(
    searcher: str, error: type[BaseException], tmp_path: Path
) -> None:
    assert outline(go_on(new_log(tmp_path), tmp_path, searcher, error)) == whole(tmp_path, searcher, TRIALS)


def test_an_interrupted_study_repeats_itself_on_both_databases(log: Log, tmp_path: Path) -> None:
    assert outline(go_on(log, tmp_path, "nsga2", Crash, 15)) == whole(tmp_path, "nsga2", 15)


@pytest.mark.parametrize("searcher", SEARCHERS)
def test_the_log_replays(searcher: str, tmp_path: Path) -> None:
    log, space = new_log(tmp_path), small()
    study = go_on(log, tmp_path, searcher, TrialInterrupted)
    events = log.read()
    asked = [event for event in events if event.kind == "asked"]
    assert len(asked) == TRIALS
    for event in asked:
        assert event.number is not None
        method = make_searcher(searcher, space, study.objectives, trials=TRIALS, steps=27)
        before = history_as_of(events, event.data["seen"], space)
        request = method.ask(before, derive(study.seed, "ask", event.number))
        assert request == read_asked(event.data, space).request


@pytest.mark.slow
@pytest.mark.timeout(180)
@pytest.mark.parametrize("searcher", ["regularized-evolution", "halving"])
@pytest.mark.long
def test_fifty_kills_change_nothing(searcher: str, tmp_path: Path) -> None:
    trials, kills = 100, 0
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["pytest", "tests.study.cases"])
    log, rng = new_log(tmp_path), derive(0, "kills")
    seen: list[Event] = []
    arguments = (str(tmp_path / "one.db"), str(tmp_path), searcher, trials)
    while kills < 50:
        process = context.Process(target=work_until_killed, args=arguments)
        process.start()
        began = len(seen)
        while process.is_alive() and len(log.read()) == began:
            time.sleep(0.002)  # until it is at work
        time.sleep(rng.uniform(0, 0.04))
        assert process.pid is not None
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        assert process.exitcode == -signal.SIGKILL, "the study was over too soon"
        kills += 1
        events = log.read()
        assert events[: len(seen)] == seen
        seen = events
    assert len([event for event in seen if event.kind == "told"]) < trials
    study = toy_study(log, tmp_path, searcher, stop=trials)
    run(study)
    assert outline(study) == whole(tmp_path, searcher, trials)
