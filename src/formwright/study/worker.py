"""A worker of a study, which asks, evaluates and tells under a lease that it keeps alive."""

import errno
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

from formwright.arch.card import Card
from formwright.core.errors import EvaluationFailed, FormwrightError
from formwright.core.protocols import GroupEvaluator
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
        self.stop()

    def stop(self) -> None:
        """Let the lease run out; a second call does nothing."""
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


class LimitExceeded(EvaluationFailed):
    """Say that a design was measured beyond a limit; it is not evaluated, and that is no failure."""


class DiskFull(FormwrightError, OSError):
    """Say that an evaluation found no room on the disk: no fault of its design, which is taken up again later."""


class _Held(NamedTuple):
    """A trial that a worker asked for or took over, what its searcher had seen, its lease, and earlier attempts."""

    number: int
    request: Request
    history: History
    heart: Heartbeat
    attempts: int


@dataclass
class Worker:
    """Work on a study until it is over. `between_steps` is called often, and may raise `TrialInterrupted`.

    Where an evaluator judges several designs together, that number of trials is asked for before any is evaluated.
    Groups end at multiples of their size, so that a worker that was killed between two questions asks the same again.
    """

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
            with ExitStack() as leases:
                held: list[_Held] = []
                try:
                    reason = self._gather(held, leases)
                    self._evaluate(held)
                except (TrialInterrupted, DiskFull):
                    for trial in held:
                        # given up for others: at once, and without the suspicion that it killed its worker
                        self.study.log.append("note", self.name, {"left": True}, trial.number)
                        trial.heart.stop()
                        self.study.log.renew(trial.number, self.name, 0.0)
                    raise
            if reason is None:
                continue
            if not self._replay.history.pending:
                return reason
            time.sleep(_WAIT)  # others are still at work, and their trials are ours if they die

    def _gather(self, held: list[_Held], leases: ExitStack) -> str | None:
        """Take over or ask for the trials that are evaluated next; return why there are none to ask for."""
        group = getattr(self.study.evaluator, "together", 1)
        while len(held) < group:
            self.between_steps()
            events = self.study.log.read(self._replay.seen)
            self._replay.feed(events)
            self._clock.feed(events)
            number, complete = self._orphan(held), len(self._replay.history.trials) % group == 0
            # A trial that may have killed a worker is evaluated alone, lest others are suspected with it, and only once
            # its group is complete, lest the rest of the group is asked for with its score known.
            suspect = number is not None and self._replay.attempts.get(number, 0) > 0
            if held and complete and (suspect or number is None):
                return None
            taken: tuple[int, Request, History] | str | None = None
            if number is None or (suspect and not complete):
                reason = self.study.stop.reason(self._replay.history, self._ledger(), self.study.objectives)
                taken = reason or self._ask()
            if number is not None and (not suspect or complete or (isinstance(taken, str) and not held)):
                taken = self._take_over(number)
            if isinstance(taken, str):
                return None if held else taken
            if taken is not None:
                heart = Heartbeat(self.study.log, taken[0], self.name, self.study.lease_seconds)
                attempts = self._replay.attempts.get(taken[0], 0)  # before the own one is read from the log
                held.append(_Held(*taken, leases.enter_context(heart), attempts))
                if suspect and taken[0] == number:
                    return None
        return None

    def _ledger(self) -> Ledger:
        # the time is asked for where it matters only: that is one of four transactions of a trial
        timed = self.study.stop.seconds is not None
        return self._replay.ledger(self._clock.elapsed(self.study.log.now()) if timed else 0.0)

    def _orphan(self, own: list[_Held]) -> int | None:
        taken = {trial.number for trial in own}
        pending = [trial.number for trial in self._replay.history.pending if trial.number not in taken]
        if not pending:
            return None
        leases, now = self.study.log.leases(), self.study.log.now()
        gone = dead(lease.worker for lease in leases.values())
        held = {number for number, lease in leases.items() if lease.expires > now and lease.worker not in gone}
        return next((number for number in pending if number not in held), None)

    def _take_over(self, number: int) -> tuple[int, Request, History] | None:
        holders = [lease.worker for lease in self.study.log.leases().values()]
        if not self.study.log.claim(number, self.name, self.study.lease_seconds, dead(holders)):
            return None
        request, seen = self._replay.asked[number].request, self._replay.asked[number].seen
        return number, request, history_as_of(self.study.log.read(), seen, self.study.space)

    def _ask(self) -> tuple[int, Request, History] | str | None:
        """Ask for a new trial; return why there is none to ask for, and nothing where another worker was quicker."""
        history, seen = self._replay.history, self._replay.seen
        number = len(history.trials)
        try:
            request = self.study.searcher.ask(history, derive(self.study.seed, "ask", number))
        except (SpaceExhausted, NoLegalDesign) as error:
            return str(error)
        data = asked_data(request, self.study.space, seen)
        if not self.study.log.ask(number, self.name, self.study.lease_seconds, data):
            return None  # the next look at the log shows the other's request
        self._replay.know(number, request, seen)
        return number, request, history

    def _evaluate(self, held: list[_Held]) -> None:
        """Evaluate trials and record what came out; those that are left in the list are not over."""
        known = self._observed_together(held)
        while held:
            trial = held[0]
            self._finish(trial, known.get(trial.number))
            held.pop(0)

    def _finish(self, trial: _Held, known: Observation | None) -> None:
        log = self.study.log
        if trial.attempts >= self.study.attempts:
            reason = f"the worker died in each of {trial.attempts} attempts"
            log.finish(trial.number, self.name, "failed", {"reason": reason})
            return
        try:
            if known is None:
                kind, data = self._outcome(trial)
            else:
                kind, data = "told", {"observation": known.to_json()}
            trial.heart.stop()
            trial.heart.check()
        except LeaseLost:
            return
        log.finish(trial.number, self.name, kind, data)

    def _observed_together(self, held: list[_Held]) -> dict[int, Observation]:
        """Evaluate several trials at once, and give what came out by number.

        Nothing is given where one of them fails or is lost to another worker: each is then evaluated alone, and only
        the one at fault fails. A design that is beyond a limit is left out.
        """
        if len(held) < 2:
            return {}  # a limit is measured once for each trial
        try:
            group = [one for one in held if self._refusal(one.request) is None]
            if len(group) < 2:
                return {}
            evaluator = cast(GroupEvaluator, self.study.evaluator)
            found = evaluator.evaluate_together([(one.request, self._context(one)) for one in group])
            return {one.number: observation for one, observation in zip(group, found, strict=True)}
        except TrialInterrupted:
            raise
        except Exception as error:
            self.study.log.append("note", self.name, {"group": f"{type(error).__name__}: {error}"})
            return {}

    def _outcome(self, trial: _Held) -> tuple[Any, dict[str, Any]]:
        began = time.perf_counter()
        try:
            if (refusal := self._refusal(trial.request)) is not None:
                raise LimitExceeded(refusal)
            found = self.study.evaluator.evaluate(trial.request, self._context(trial))
        except (LeaseLost, TrialInterrupted):
            raise
        except EvaluationFailed as error:
            refused = {"refused": True} if isinstance(error, LimitExceeded) else {}
            return "failed", {"reason": str(error), **refused, **_spent_since(began)}
        except Exception as error:
            if _is_disk_full(error):
                raise DiskFull(f"{error}. Free some space, then resume the study.") from error
            # whatever else an evaluator of someone's own does wrong is this trial's failure, and no reason to stop
            detail = f"{type(error).__name__}: {error}"
            return "failed", {"reason": detail, "traceback": traceback.format_exc(), **_spent_since(began)}
        return "told", {"observation": found.to_json()}

    def _refusal(self, request: Request) -> str | None:
        """Say which measured limit a design breaks, if any."""
        return self.study.gate(request.card) if isinstance(request.card, Card) else None

    def _context(self, trial: _Held) -> Context:
        def after_step(_: int, __: float) -> None:
            self.between_steps()
            trial.heart.check()

        return Context(self.study.seed, self.study.folder, trial.history, after_step)


def _is_disk_full(error: BaseException | None) -> bool:
    """Tell whether an error is that of a full disk, or was raised because of one."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in _NO_ROOM:
            return True
        error = error.__cause__ or error.__context__
    return False


def _spent_since(began: float) -> dict[str, Any]:
    """Give what a failure is known to have spent: its seconds, as the number of its steps is unknown."""
    return {"spent": {"seconds": time.perf_counter() - began}}
