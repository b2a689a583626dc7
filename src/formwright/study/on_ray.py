"""Workers on a Ray cluster: actors that are started, watched and, where they or their machines die, replaced.

Ray only runs the workers. What is done and what has to be done again stands in the log, as with local processes.
"""

import math
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cloudpickle

from formwright.core.errors import FormwrightError, IllegalInput
from formwright.core.extras import need
from formwright.study.processes import FAULTY, Work, WorkersDied
from formwright.train.interrupt import gentle_interruption

LOCAL = "local"
_PAUSE = 0.25  # seconds between two looks at the workers
_HEARING = 5.0  # seconds in which a worker that has begun hears that it is to stop
_ONE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}


@dataclass(frozen=True)
class Ended:
    """Say how a worker ended: 0 when the study is over, else a code of `launch`, with a message where it is faulty."""

    code: int
    message: str = ""


class Actor:
    """Work on a study in a process of a Ray cluster; `stop` is called while `run` is under way."""

    def __init__(self) -> None:
        self._stop = threading.Event()

    def stop(self) -> None:
        """Ask the worker to leave its trial, which is taken up again later."""
        self._stop.set()

    def run(self, payload: bytes, folder: str) -> Ended:
        """Do the work until it is over; relative paths are those of `folder`, where this machine has it."""
        if Path(folder).is_dir():
            os.chdir(folder)
        try:
            work: Work = cloudpickle.loads(payload)
            return Ended(work(self._stop.is_set))
        except FormwrightError as error:
            return Ended(FAULTY, str(error))


def run_on_ray(
    work: Work,
    workers: int,
    look: Callable[[], None],
    address: str = LOCAL,
    *,
    cpus: float = 1.0,
    gpus: float = 0.0,
    replacements: int = 10,
    storage: str = "",
) -> bool:
    """Do some work with N Ray actors until it is over; `look` is called several times a second.

    `address` is that of a cluster, `auto` for the one that this machine is part of, or `local` to start one here.
    Return False when the user asked to stop before the study was over. An actor that dies, alone or with its machine,
    is replaced, at most `replacements` times.
    """
    ray, address = need("ray", "ray"), address or LOCAL
    with _cluster(ray, address, workers * cpus):
        _refuse_shared_file(ray, storage)
        _announce_waiting(ray, {"CPU": cpus, "GPU": gpus})
        # two methods at once: `stop` must get through while `run` runs
        kind = ray.remote(
            num_cpus=cpus, num_gpus=gpus, max_concurrency=2, max_restarts=0, runtime_env={"env_vars": _ONE_THREAD}
        )(Actor)
        team = _RayWorkers(ray, kind, cloudpickle.dumps(work), replacements)
        try:
            return team.work(workers, look)
        finally:
            team.dismiss()
            look()


class _RayWorkers:
    """The actors at work, each with the promise of how it ends."""

    def __init__(self, ray: Any, kind: Any, payload: bytes, replacements: int) -> None:
        self._ray, self._kind, self._payload = ray, kind, payload
        self._deaths, self._borne = 0, replacements
        self._actors: dict[Any, Any] = {}

    def work(self, number: int, look: Callable[[], None]) -> bool:
        """Keep this number of actors at work until the study is over (True) or the user asks to stop (False)."""
        for _ in range(number):
            self._hire()
        asked = False
        with gentle_interruption() as interruption:
            while self._actors:
                look()
                if interruption.asked and not asked:
                    asked = True
                    self._ask_to_stop()
                for ended in self._ended(replace_dead=not asked):
                    if ended.code == FAULTY:
                        raise WorkersDied(f"a worker could not work on the study: {ended.message}")
                    if ended.code == 0:
                        # one worker that sees the end has seen that no trial is under way
                        return not interruption.asked
        return False

    def dismiss(self) -> None:
        """End every actor that is left."""
        for actor in self._actors.values():
            self._ray.kill(actor)
        self._actors.clear()

    def _hire(self) -> None:
        actor = self._kind.remote()
        self._actors[actor.run.remote(self._payload, os.getcwd())] = actor

    def _ask_to_stop(self) -> None:
        """Ask every actor to stop; one that has found no machine yet cannot hear it, holds no trial, and is ended."""
        asked = {actor.stop.remote(): promise for promise, actor in self._actors.items()}
        _, deaf = self._ray.wait([*asked], num_returns=len(asked), timeout=_HEARING)
        for answer in deaf:
            self._ray.kill(self._actors.pop(asked[answer]))

    def _ended(self, *, replace_dead: bool) -> Iterator[Ended]:
        ready, _ = self._ray.wait([*self._actors], num_returns=1, timeout=_PAUSE)
        for promise in ready:
            del self._actors[promise]
            try:
                yield self._ray.get(promise)
            except self._ray.exceptions.RayError as error:
                self._bear(error, replace_dead)

    def _bear(self, error: Exception, replace_dead: bool) -> None:
        self._deaths += 1
        if not replace_dead:
            return
        if self._deaths > self._borne:
            raise WorkersDied(
                f"workers on Ray died {self._deaths} times, the last one of: {_last_line(error)}"
            ) from error
        self._hire()


@contextmanager
def _cluster(ray: Any, address: str, cpus: float) -> Iterator[None]:
    """Connect to a cluster, or start one; what this process was connected to before stays so."""
    if ray.is_initialized():
        yield
        return
    # a local cluster offers at least what the workers ask for: more workers than cores are the user's choice
    size = (
        {"num_cpus": max(os.cpu_count() or 1, math.ceil(cpus)), "include_dashboard": False} if address == LOCAL else {}
    )
    try:
        ray.init(address=address, log_to_driver=False, logging_level="ERROR", **size)
    except (OSError, RuntimeError, ValueError) as error:
        raise IllegalInput(f"cannot reach a Ray cluster at {address!r}: {_last_line(error)}") from error
    try:
        yield
    finally:
        ray.shutdown()


def _refuse_shared_file(ray: Any, storage: str) -> None:
    machines = {node["NodeManagerHostname"] for node in ray.nodes() if node["Alive"]}
    if len(machines) > 1 and not storage.startswith("postgres"):
        raise IllegalInput(
            f"{storage} is a file, and the Ray cluster has {len(machines)} machines, which cannot write one file "
            "safely; start the study with --storage postgresql+psycopg://USER@HOST/DATABASE"
        )


def _announce_waiting(ray: Any, wanted: dict[str, float]) -> None:
    """Say when no machine has what a worker needs; a cluster that grows by itself may still get one."""
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    if not any(all(node.get(name, 0.0) >= amount for name, amount in wanted.items()) for node in nodes):
        needs = " and ".join(f"{amount:g} {name}" for name, amount in wanted.items() if amount)
        print(f"no machine of the Ray cluster has {needs}; waiting for one", file=sys.stderr, flush=True)


def _last_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__
