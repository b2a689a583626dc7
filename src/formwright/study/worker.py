"""A worker of a study, which asks, evaluates and tells under a lease that it keeps alive."""

import errno
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from formwright.arch.card import Card
from formwright.core.errors import EvaluationFailed, FormwrightError
from formwright.core.records import History, Observation, Request
from formwright.core.rng import derive
from formwright.evaluate.context import Context
from formwright.search.proposals import NoLegalDesign, SpaceExhausted
from formwright.study.identity import dead, own_name
from formwright.study.replay import Replay, asked_data, history_as_of
from formwright.study.stop import Clock, Ledger
from formwright.study.store import Log
from formwright.study.study import StudySetup

_BEATS = 4  # in the time of a lease


class LeaseLost(Exception):
    """Say that the trial is another worker's by now."""


class Heartbeat:
    """Renew a lease from a thread of its own until the evaluation is over."""

    def __init__(self, log: Log, number: int, worker: str, seconds: float) -> None:
        self._log, self._number, self._worker, self._seconds = log, number, worker, seconds
        self._over = threading.Event()
        self._lost = threading.Event()
        self._thread = threading.Thread(target=self._beat, daemon=True, name=f"lease of trial {number}")

    def __enter__(self) -> "Heartbeat":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def check(self) -> None:
        """Raise `LeaseLost` when the lease could not be renewed because another worker has it."""
        if self._lost.is_set():
            raise LeaseLost

    def _beat(self) -> None:
        while not self._over.wait(self._seconds / _BEATS):
            try:
                if not self._log.renew(self._number, self._worker, self._seconds):
                    self._lost.set()
                    return
            except FormwrightError:
                continue  # a database that is away for a moment; the lease decides whether it was too long


_WAIT = 0.5  # seconds between two looks at the trials of others
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)


class TrialInterrupted(Exception):
    """Ask the loop, from `between_steps`, to leave at once; the trial under way is taken up again later."""


class DiskFull(FormwrightError, OSError):
    """Say that an evaluation found no room on the disk: no fault of its design, which is taken up again later."""


@dataclass
class Worker:
    """Work on a study until it is over. `between_steps` is called often, and may raise `TrialInterrupted`."""

    study: StudySetup
    name: str = field(default_factory=own_name)
    between_steps: Callable[[], None] = lambda: None

    def __post_init__(self) -> None:
        """Begin with an empty memory; the log fills it."""
        self._replay = Replay(self.study.space)
        self._clock = Clock()

    def run(self) -> str:
        """Work until the study is over, record why it is, and return that."""
        reason = self._work()
        self.study.log.append("stopped", self.name, {"reason": reason})
        return reason

    def _work(self) -> str:
        while True:
            self.between_steps()
            events = self.study.log.read(self._replay.seen)
            self._replay.feed(events)
            self._clock.feed(events)
            if (number := self._orphan()) is not None:
                self._take_over(number)
                continue
            reason = self.study.stop.reason(self._replay.history, self._ledger(), self.study.objectives)
            reason = reason or self._ask()
            if reason is None:
                continue
            if not self._replay.history.pending:
                return reason
            time.sleep(_WAIT)  # others are still at work, and their trials are ours if they die

    def _ledger(self) -> Ledger:
        # the time is asked for where it matters only: that is one of four transactions of a trial
        timed = self.study.stop.seconds is not None
        return self._replay.ledger(self._clock.elapsed(self.study.log.now()) if timed else 0.0)

    def _orphan(self) -> int | None:
        pending = [trial.number for trial in self._replay.history.pending]
        if not pending:
            return None
        leases, now = self.study.log.leases(), self.study.log.now()
        gone = dead(lease.worker for lease in leases.values())
        held = {number for number, lease in leases.items() if lease.expires > now and lease.worker not in gone}
        return next((number for number in pending if number not in held), None)

    def _take_over(self, number: int) -> None:
        holders = [lease.worker for lease in self.study.log.leases().values()]
        if self.study.log.claim(number, self.name, self.study.lease_seconds, dead(holders)):
            seen = self._replay.asked[number].seen
            history = history_as_of(self.study.log.read(), seen, self.study.space)
            self._evaluate(number, self._replay.asked[number].request, history)

    def _ask(self) -> str | None:
        """Ask for a new trial and evaluate it; return why there is none to ask for."""
        history, seen = self._replay.history, self._replay.seen
        number = len(history.trials)
        try:
            request = self.study.searcher.ask(history, derive(self.study.seed, "ask", number))
        except (SpaceExhausted, NoLegalDesign) as error:
            return str(error)
        data = asked_data(request, self.study.space, seen)
        if self.study.log.ask(number, self.name, self.study.lease_seconds, data):
            self._replay.know(number, request, seen)
            self._evaluate(number, request, history)
        return None  # where another worker was quicker, the next look at the log shows its request

    def _evaluate(self, number: int, request: Request, history: History) -> None:
        log, attempts = self.study.log, self._replay.attempts.get(number, 0)
        if attempts >= self.study.attempts:
            log.finish(number, self.name, "failed", {"reason": f"the worker died in each of {attempts} attempts"})
            return
        try:
            with Heartbeat(log, number, self.name, self.study.lease_seconds) as heart:
                kind, data = self._outcome(request, history, heart)
                heart.check()
        except LeaseLost:
            return
        except (TrialInterrupted, DiskFull):
            # given up for others: at once, and without the suspicion that it killed its worker
            log.append("note", self.name, {"left": True}, number)
            log.renew(number, self.name, 0.0)
            raise
        log.finish(number, self.name, kind, data)

    def _outcome(self, request: Request, history: History, heart: Heartbeat) -> tuple[Any, dict[str, Any]]:
        began = time.perf_counter()
        try:
            found = self._observe(request, history, heart)
        except (LeaseLost, TrialInterrupted):
            raise
        except EvaluationFailed as error:
            return "failed", {"reason": str(error), **_spent_since(began)}
        except Exception as error:
            if _is_disk_full(error):
                raise DiskFull(f"{error}. Free some space, then resume the study.") from error
            # whatever else an evaluator of someone's own does wrong is this trial's failure, and no reason to stop
            told = f"{type(error).__name__}: {error}"
            return "failed", {"reason": told, "traceback": traceback.format_exc(), **_spent_since(began)}
        return "told", {"observation": found.to_json()}

    def _observe(self, request: Request, history: History, heart: Heartbeat) -> Observation:
        def after_step(_: int, __: float) -> None:
            self.between_steps()
            heart.check()

        if isinstance(request.card, Card) and (refusal := self.study.gate(request.card)) is not None:
            raise EvaluationFailed(refusal)
        context = Context(self.study.seed, self.study.folder, history, after_step)
        return self.study.evaluator.evaluate(request, context)


def _is_disk_full(error: BaseException | None) -> bool:
    """Tell whether an error is that of a full disk, or was raised because of one."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in _NO_ROOM:
            return True
        error = error.__cause__ or error.__context__
    return False


def _spent_since(began: float) -> dict[str, Any]:
    """Give what a failure is known to have spent: its seconds, as nobody tells how many steps it came to."""
    return {"spent": {"seconds": time.perf_counter() - began}}
