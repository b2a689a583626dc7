"""What a study has delivered, and what it could not, as its log tells."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from formwright.arch.card import Card
from formwright.nn.hf.folders import CARD
from formwright.study.log import Log
from formwright.study.place import Opened

Role = Literal["best", "front", "baseline", "teacher"]
MODELS = "models"
UNDELIVERED = "undelivered"  # the notes of final trainings that failed


@dataclass(frozen=True)
class Delivered:
    """A model that was trained, tested and written; `costs` are what was measured of it."""

    name: str
    role: Role
    digest: str
    path: str
    params: int
    steps: int
    validation: Mapping[str, float]
    test: Mapping[str, float] | None
    trial: int | None
    costs: Mapping[str, float] = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class Undelivered:
    """A design whose final training failed, and why; it would fail again, and is not tried again."""

    name: str
    role: Role
    digest: str
    reason: str
    trial: int | None


def delivered(opened: Opened) -> dict[str, Delivered]:
    """Read from the log which models have been delivered, by name."""
    notes = [event.data["model"] for event in opened.log.read() if event.kind == "note" and "model" in event.data]
    models = opened.place.folder / MODELS  # which may have moved, or be named from elsewhere, since the note was made
    return {note["name"]: Delivered(**note | {"path": str(models / note["name"])}) for note in notes}


def undelivered(log: Log) -> dict[str, Undelivered]:
    """Read from the log which designs could not be delivered, by digest."""
    notes = [event.data.get(UNDELIVERED) for event in log.read() if event.kind == "note"]
    return {note["digest"]: Undelivered(**note) for note in notes if note is not None}


def card_of_model(model: Delivered) -> Card:
    """Read the card of a delivered model."""
    return Card.loads((Path(model.path) / CARD).read_bytes())
