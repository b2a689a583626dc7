"""From the log to the history that searchers see."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from formwright.arch.card import Card
from formwright.core.records import Budget, History, Observation, Request, Trial
from formwright.space.space import Space
from formwright.study.events import Event


@dataclass(frozen=True)
class Asked:
    """What the log says of a trial when it was asked for: the request, and the last event the searcher had seen."""

    request: Request
    seen: int


def asked_data(request: Request, space: Space, seen: int) -> dict[str, Any]:
    """Give what the log keeps of a request."""
    design = None if request.design is None else space.to_json(request.design)
    return {**request.to_json(), "design": design, "seen": seen}


def read_asked(data: Any, space: Space) -> Asked:
    """Read what `asked_data` gave."""
    card = Card.from_json(data["card"])
    design = None if data["design"] is None else space.from_json(data["design"])
    return Asked(Request(card, Budget.from_json(data["budget"]), data["parent"], design), data["seen"])


class Replay:
    """Follow a log: give it events in their order, and it keeps the history."""

    def __init__(self, space: Space) -> None:
        self._space = space
        self._trials: dict[int, Trial] = {}
        self._history: History | None = None
        self.asked: dict[int, Asked] = {}
        self.attempts: dict[int, int] = {}
        self.seen = 0

    def feed(self, events: Iterable[Event]) -> None:
        """Take further events."""
        for event in events:
            self._take(event)
            self.seen = event.id
            self._history = None

    @property
    def history(self) -> History:
        """Give the history as of the last event."""
        if self._history is None:
            self._history = History(tuple(self._trials[number] for number in sorted(self._trials)))
        return self._history

    def _take(self, event: Event) -> None:
        number = event.number
        if event.kind == "started" and event.data.get("begins"):
            self.attempts.clear()  # only the deaths of one run make a trial suspect
        if number is None:
            return
        match event.kind:
            case "asked":
                self.asked[number] = read_asked(event.data, self._space)
                self._trials[number] = Trial(number, self.asked[number].request)
            case "claimed":
                self.attempts[number] = self.attempts.get(number, 0) + 1
            case "note" if event.data.get("left"):
                self.attempts[number] = max(self.attempts.get(number, 0) - 1, 0)  # its worker did not die
            case "told":
                found = Observation.from_json(event.data["observation"])
                self._trials[number] = Trial(number, self.asked[number].request, "finished", found)
            case "failed":
                reason = event.data["reason"]
                self._trials[number] = Trial(number, self.asked[number].request, "failed", None, reason)


def history_as_of(events: Iterable[Event], seen: int, space: Space) -> History:
    """Give the history that a searcher saw when the last event was `seen`."""
    replay = Replay(space)
    replay.feed(event for event in events if event.id <= seen)
    return replay.history
