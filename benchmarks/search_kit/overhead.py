"""The clocks: what a trial costs beside its evaluation, and what one proposal costs after 10,000 trials."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import optuna

from formwright.core.records import History, Observation, Request, Trial
from formwright.core.rng import derive
from formwright.search import make_searcher
from formwright.search.categorical import Slot, compose
from formwright.study.stop import Stop
from formwright.study.store import Store
from formwright.study.study import StudySetup
from formwright.study.worker import Worker
from search_kit.problem import GOALS, Problem

Figures = dict[str, dict[str, float]]
NOTHING = Observation({"accuracy": 0.5, "params": 1.0})
WINDOW = 200  # trials timed, the last ones of a run
LONG, SHORT = 10_000, 1_000


class Idle:
    """Evaluate nothing, and note when that was."""

    def __init__(self) -> None:
        self.marks: list[tuple[float, float]] = []

    def evaluate(self, request: object, context: object = None) -> Observation:
        self.marks.append((time.perf_counter(), time.process_time()))
        return NOTHING

    def window(self, end: int) -> dict[str, float]:
        """Give the milliseconds from one evaluation to the next, for the `WINDOW` trials before number `end`."""
        steps = 1_000 * np.diff(np.array(self.marks[end - WINDOW - 1 : end]), axis=0)
        return {"wall_median": float(np.median(steps[:, 0])), "cpu_mean": float(steps[:, 1].mean())}


def our_loop(url: str, trials: int) -> Idle:
    """Run a study of our own: random designs of the problem, stored whole, in one process."""
    idle, space = Idle(), Problem().space
    with tempfile.TemporaryDirectory() as folder, Store.open(url, create=True) as store:
        store.create_study("idle", {})
        searcher = make_searcher("random", space, GOALS)
        stop = Stop(trials=trials)
        Worker(StudySetup(store.study("idle"), space, searcher, idle, GOALS, stop, Path(folder))).run()
    return idle


def optuna_loop(url: str, trials: int, whole: bool, before: int = 0) -> Idle:
    """Run a study of Optuna's after `before` stored trials: random designs, each slot a parameter, or one number each.

    One number is the least that Optuna can store of a trial; then the design is not in its database.
    """
    idle, root = Idle(), Problem().space.root

    def objective(trial: optuna.Trial) -> tuple[float, float]:
        if whole:
            compose(root, partial(_suggest, trial))
        else:
            trial.suggest_int("design", 0, 1_000_000)
        idle.evaluate(trial)
        return 0.5, 1.0

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        storage, sampler = optuna.storages.RDBStorage(url), optuna.samplers.RandomSampler(seed=0)
        study = optuna.create_study(storage=storage, directions=["maximize", "minimize"], sampler=sampler)
        study.add_trials([_stored(number) for number in range(before)])
        study.optimize(objective, n_trials=trials)
        storage.engine.dispose()
    return idle


def _suggest(trial: optuna.Trial, slot: Slot) -> int:
    return trial.suggest_int(slot.name, 0, slot.options - 1)


def _stored(number: int) -> optuna.trial.FrozenTrial:
    kind = optuna.distributions.IntDistribution(0, 1_000_000)
    return optuna.trial.create_trial(values=[0.5, 1.0], params={"design": number}, distributions={"design": kind})


def measure_overhead() -> Figures:
    """Time trials on both databases: ours up to 10,000 in the log, theirs up to 1,000, which takes as long."""
    figures: Figures = {}
    with tempfile.TemporaryDirectory() as folder, postgres() as new_url:
        file = f"sqlite:///{folder}"
        long = our_loop(f"{file}/ours.db", LONG)
        figures[f"sqlite, ours, {SHORT} trials"] = long.window(SHORT)
        figures[f"sqlite, ours, {LONG} trials"] = long.window(LONG)
        figures[f"postgresql, ours, {SHORT} trials"] = our_loop(new_url(), SHORT).window(SHORT)
        more = WINDOW + 1
        peers: dict[str, Callable[[], Idle]] = {
            f"sqlite, optuna, one number, {SHORT} trials": lambda: optuna_loop(f"{file}/a.db", more, False, SHORT),
            "sqlite, optuna, whole designs, 200 trials": lambda: optuna_loop(f"{file}/b.db", more, True),
            f"postgresql, optuna, one number, {SHORT} trials": lambda: optuna_loop(new_url(), more, False, SHORT),
            "postgresql, optuna, whole designs, 200 trials": lambda: optuna_loop(new_url(), more, True),
        }
        return figures | {name: run().window(more) for name, run in peers.items()}


def measure_asks() -> Figures:
    """Time one proposal after 10,000 trials, which are random designs."""
    problem, rng = Problem(), derive(0, "history")
    trials: dict[str, Trial] = {}
    while len(trials) < LONG:
        design = problem.space.sample(rng, by="gene")
        request = Request(problem.space.card(design), design=design)
        trials.setdefault(request.card.digest, Trial(len(trials), request, "finished", problem.evaluate(request)))
    history = History(tuple(trials.values()))
    return {
        f"{name}, a long history": _time_asks(name, problem, history)
        for name in ("nsga2", "regularized-evolution", "random")
    }


def _time_asks(name: str, problem: Problem, history: History) -> dict[str, float]:
    searcher, idle = make_searcher(name, problem.space, GOALS), Idle()
    for number in range(WINDOW + 1):
        idle.evaluate(searcher.ask(history, derive(number, "ask")))
    return idle.window(WINDOW + 1)


@contextmanager
def postgres() -> Iterator[Callable[[], str]]:
    """Start a server of its own, with the settings it comes with; give a function that makes a new database."""
    on_path = shutil.which("initdb")
    binaries = Path(on_path).resolve().parent if on_path else sorted(Path("/usr/lib/postgresql").glob("*/bin"))[-1]
    folder = Path(tempfile.mkdtemp(prefix="formwright-"))
    if os.getuid() == 0:  # PostgreSQL refuses to run as root; its package makes a user for it
        shutil.chown(folder, "postgres")
    run = partial(_run, binaries, folder)
    run("initdb", "-D", "data", "-U", "postgres", "-A", "trust")
    run("pg_ctl", "-D", "data", "-w", "-l", "log", "-o", f"-k {folder} -c listen_addresses=", "start")
    made: list[str] = []

    def new_url() -> str:
        made.append(f"study{len(made)}")
        run("createdb", "-h", str(folder), "-U", "postgres", made[-1])
        return f"postgresql+psycopg://postgres@/{made[-1]}?host={folder}"

    try:
        yield new_url
    finally:
        run("pg_ctl", "-D", "data", "-w", "-m", "fast", "stop")
        shutil.rmtree(folder)


def _run(binaries: Path, folder: Path, program: str, *arguments: str) -> None:
    as_other = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] if os.getuid() == 0 else []
    command: list[Any] = [*as_other, binaries / program, *arguments]
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
