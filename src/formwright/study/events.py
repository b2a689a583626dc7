"""What a study's log holds: events and leases, and their data as exact JSON text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from formwright.core.errors import IllegalInput

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


def from_text(text: str) -> dict[str, Any]:
    """Read what `to_text` wrote."""
    data: dict[str, Any] = json.loads(text)
    return data


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
