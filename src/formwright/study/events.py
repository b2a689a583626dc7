"""What a study's log holds: events and leases, and their data as exact JSON text."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from formwright.core.errors import IllegalInput

DATA_WARNINGS = "data_warnings"  # in the events that begin a run
Kind = Literal["started", "asked", "claimed", "told", "failed", "stopped", "note"]
Outcome = Literal["told", "failed"]


@dataclass(frozen=True)
class Event:
    """State one thing that happened in a study; `number` is the trial's, `at` seconds since 1970."""

    id: int
    kind: Kind
    number: int | None
    worker: str
    at: float
    data: Mapping[str, Any] = field(hash=False)


@dataclass(frozen=True)
class Lease:
    """Name the worker that evaluates a trial, until when that is believed, and the how-many-eth try it is."""

    number: int
    worker: str
    expires: float
    attempts: int


def to_text(data: Mapping[str, Any]) -> str:
    """Write plain JSON that reads back equal: every float exactly, every character, keys in their order."""
    _refuse_other_keys(data, "data")
    try:
        return json.dumps(dict(data), allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        raise IllegalInput(f"a study records plain, finite JSON only: {error}.") from error


def from_text(text: str, what: Callable[[], str]) -> dict[str, Any]:
    """Read what `to_text` wrote; raise IllegalInput for anything else, which `what` gives a name."""
    try:
        data = json.loads(text)
    except (TypeError, ValueError) as error:
        raise IllegalInput(f"{what()} is damaged: {error}.") from None
    except RecursionError:
        raise IllegalInput(f"{what()} is damaged: it is nested too deeply to be read.") from None
    if not isinstance(data, dict):
        raise IllegalInput(f"{what()} is damaged: it holds a {type(data).__name__}, not an object.")
    return data


def first_hash(name: str, config: str) -> str:
    """Give the hash that the log of a study begins with: that of its name and of its configuration, as stored."""
    return _sha256(f"formwright {len(name)} {name} {config}")


def next_hash(previous: str, event: Any) -> str:
    """Give the hash of an event, a row of the table, that follows the one with the hash `previous`.

    It covers every column but the identifier, and the hash before it: neither a changed digit nor a missing, moved or
    inserted event goes unnoticed.
    """
    worker, slot = event.worker, event.slot or ""  # no event of ours lacks a slot, but a damaged one may
    words = f"{previous} {event.kind} {event.number} {event.at!r} {len(worker)} {worker} {len(slot)} {slot}"
    return _sha256(f"{words} {event.data}")


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()


def _refuse_other_keys(value: object, where: str) -> None:
    """Raise IllegalInput for keys that are not text: JSON would silently turn them into text."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            if not isinstance(key, str):
                raise IllegalInput(f"a study records plain, finite JSON only: {where} has the key {key!r}, not text.")
            _refuse_other_keys(item, f"{where}.{key}")
    elif isinstance(value, list | tuple):
        for item in value:
            _refuse_other_keys(item, where)


def noted_warnings(events: Iterable[Event]) -> list[dict[str, Any]]:
    """Give the warnings about the rows of a study's task that its log holds: kind, count and message of each."""
    noted = [event.data[DATA_WARNINGS] for event in events if event.kind == "started" and DATA_WARNINGS in event.data]
    return list(noted[0]) if noted else []
