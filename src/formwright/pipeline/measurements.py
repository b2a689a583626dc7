"""Costs that were measured in one sitting, as the log of a study notes them: only these may be compared."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from formwright.study.events import Event

MEASURED = "measured"  # the notes of sittings
RUNTIMES = {"latency_ms": "torch", "onnx_ms": "ONNX Runtime", "int8_ms": "ONNX Runtime in 8 bits"}


@dataclass(frozen=True)
class Sitting:
    """Milliseconds of models, by name and digest, of one row of `length` tokens; `busy`: so was the machine.

    All models were measured in turns, so that a busy time fell on all of them.
    """

    length: int
    device: str
    threads: int
    busy: bool
    costs: Mapping[str, Mapping[str, float]] = field(hash=False)
    digests: Mapping[str, str] = field(hash=False)

    def to_json(self) -> dict[str, Any]:
        """Give plain JSON data."""
        return asdict(self)

    def of(self, name: str, digest: str) -> Mapping[str, float]:
        """Give what was measured of a model; nothing where it was not there, or is another one by now."""
        return self.costs.get(name, {}) if self.digests.get(name) == digest else {}


def last_sitting(events: Iterable[Event]) -> Sitting | None:
    """Read the last sitting from a log."""
    notes = [event.data[MEASURED] for event in events if event.kind == "note" and MEASURED in event.data]
    return Sitting(**notes[-1]) if notes else None
