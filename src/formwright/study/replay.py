"""From the log to the history that searchers see."""

from bisect import insort
from collections.abc import Iterable
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from formwright.arch.card import Card
from formwright.core.errors import FormwrightError, IllegalInput
from formwright.core.protocols import CardLike
from formwright.core.records import Budget, DataCard, History, Observation, Request, Spent, Trial
from formwright.space.space import Space
from formwright.study.events import Event
from formwright.study.stop import Ledger


@dataclass(frozen=True)
class Asked:
    """What the log says of a trial when it was asked for: the request, and the last event the searcher had seen."""

    request: Request
    seen: int


def asked_data(request: Request, space: Space, seen: int) -> dict[str, Any]:
    """Give what the log keeps of a request."""
    design = None if request.design is None else space.to_json(request.design)
    return {**request.to_json(), "design": design, "seen": seen}


def read_asked(data: Any, space: Space | None) -> Asked:
    """Read what `asked_data` gave; without a space, the card alone, and no design."""
    design = None if data["design"] is None or space is None else space.from_json(data["design"])
    card = _read_card(data["card"], design, space)
    return Asked(Request(card, Budget.from_json(data["budget"]), data["parent"], design), data["seen"])


def _read_card(data: Any, design: Any, space: Space | None) -> CardLike:
    # what the space builds today is nearly always what was stored, and comparing takes a third of the time of reading
    built = None if design is None or space is None else space.card(design)
    if built is not None and built.to_json() == data:
        return built
    ours = isinstance(data, dict) and "schema" in data
    return Card.from_json(data) if ours else DataCard(data)


class Replay:
    """Follow a log: give it events in their order, and it keeps the history; without a space, one without designs.

    What a history consists of is kept up to date event by event: a worker that counted all trials again for each of
    them would take longer and longer.
    """

    def __init__(self, space: Space | None) -> None:
        self._space = space
        self._trials: dict[int, Trial] = {}  # in the order of their numbers: who asks for one has seen those before it
        self._finished: list[Trial] = []
        self._digests: set[str] = set()
        self._spent = Spent()
        self._failed_lately = self._refused = 0
        self._known: dict[int, Asked] = {}
        self._history: History | None = None
        self._pending: set[int] = set()
        self.asked: dict[int, Asked] = {}
        self.attempts: dict[int, int] = {}
        self.seen = 0

    @classmethod
    def of(cls, events: Iterable[Event], space: Space | None) -> "Replay":
        """Replay all events of a log."""
        found = cls(space)
        found.feed(events)
        return found

    def feed(self, events: Iterable[Event]) -> None:
        for event in events:
            try:
                self._take(event)
            except (AttributeError, KeyError, TypeError, ValueError) as error:
                if isinstance(error, FormwrightError):
                    raise
                detail = f"event {event.id} ({event.kind}, trial {event.number}) of the log cannot be understood"
                raise IllegalInput(f"{detail}: {type(error).__name__}: {error}") from error
            self.seen = event.id
            self._history = None

    @property
    def history(self) -> History:
        """Give the history as of the last event."""
        if self._history is None:
            pending = tuple(self._trials[number] for number in sorted(self._pending))
            trials, finished = tuple(self._trials.values()), tuple(self._finished)
            self._history = History(trials)
            vars(self._history).update(finished=finished, pending=pending, digests=frozenset(self._digests))
        return self._history

    def ledger(self, elapsed: float) -> Ledger:
        """Give what the trials cost as of the last event, after the given number of seconds."""
        finished, pending = len(self._finished), len(self._pending)
        failed = len(self._trials) - finished - pending
        return Ledger(finished, failed, pending, self._spent, elapsed, self._failed_lately, self._refused)

    def know(self, number: int, request: Request, seen: int) -> None:
        """Take note of a request that was just written, so that its event need not be read from JSON."""
        self._known[number] = Asked(request, seen)

    def _take(self, event: Event) -> None:
        number = event.number
        if event.kind == "started" and event.data.get("begins"):
            self.attempts.clear()  # only the deaths of one run make a trial suspect
            self._failed_lately = 0
        if number is None:
            return
        match event.kind:
            case "asked":
                known = self._known.pop(number, None) or read_asked(event.data, self._space)
                self.asked[number], self._trials[number] = known, Trial(number, known.request)
                self._pending.add(number)
                self._digests.add(known.request.card.digest)
            case "claimed":
                self.attempts[number] = self.attempts.get(number, 0) + 1
            case "note" if event.data.get("left"):
                self.attempts[number] = max(self.attempts.get(number, 0) - 1, 0)  # its worker did not die
            case "told":
                found = Observation.from_json(event.data["observation"])
                self._end(Trial(number, self.asked[number].request, "finished", found), found.spent)
                insort(self._finished, self._trials[number], key=attrgetter("number"))
                self._refused = 0
            case "failed":
                reason, spent = event.data["reason"], Spent(**event.data.get("spent", {}))
                self._end(Trial(number, self.asked[number].request, "failed", None, reason), spent)
                refused = event.data.get("refused", False)
                self._failed_lately += not refused
                self._refused = self._refused + 1 if refused else 0

    def _end(self, trial: Trial, spent: Spent) -> None:
        self._trials[trial.number] = trial
        self._pending.discard(trial.number)
        before = self._spent
        self._spent = Spent(before.seconds + spent.seconds, before.steps + spent.steps, before.macs + spent.macs)


def history_as_of(events: Iterable[Event], seen: int, space: Space) -> History:
    """Give the history that a searcher saw when the last event was `seen`."""
    return Replay.of((event for event in events if event.id <= seen), space).history
