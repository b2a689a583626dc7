"""What a study has delivered, and what it could not, as its log tells."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from formwright.arch.card import Card
from formwright.core.checks import folder_name
from formwright.nn.hf.model_folder import CARD
from formwright.pipeline.measurements import Sitting, last_sitting
from formwright.pipeline.run_folder import Opened
from formwright.study.log import Log
from formwright.tasks.bootstrap import Evidence

Role = Literal["best", "front", "baseline", "teacher"]
MODELS = "models"
UNDELIVERED = "undelivered"  # the notes of final trainings that failed


@dataclass(frozen=True)
class Delivered:
    """A model that was trained, tested and written; `costs` are what was measured of it.

    It was trained for `steps`, and has the weights that were the best on validation: those after `best_step`.
    `evidence` says for each split how sure the scores are.
    """

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
    best_step: int = 0
    evidence: Mapping[str, Evidence] = field(default_factory=dict, hash=False)


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
    return {note["name"]: _model(note, models) for note in notes}


def _model(note: Mapping[str, Any], models: Path) -> Delivered:
    evidence = {split: Evidence.from_json(told) for split, told in note.get("evidence", {}).items()}
    return Delivered(**{**note, "path": str(models / folder_name("a model", note["name"])), "evidence": evidence})


def reported(model: Delivered, split: str) -> Mapping[str, float]:
    """Give the scores of a model on a split; none where it was not tested."""
    return model.validation if split == "validation" else model.test or {}


def reported_split(model: Delivered) -> str:
    """Name the split whose scores count: test, where it was opened."""
    return "validation" if model.test is None else "test"


def measured_models(opened: Opened) -> dict[str, Delivered]:
    """Read the delivered models with the costs of the last sitting, which may be compared with each other."""
    sitting, models = last_sitting(opened.log.read()), delivered(opened)
    return models if sitting is None else {name: with_costs(model, sitting) for name, model in models.items()}


def with_costs(model: Delivered, sitting: Sitting) -> Delivered:
    """Give a model with what was measured of it in a sitting."""
    return replace(model, costs={**model.costs, **sitting.of(model.name, model.digest)})


def undelivered(log: Log) -> dict[str, Undelivered]:
    """Read from the log which designs could not be delivered, by digest."""
    notes = [event.data.get(UNDELIVERED) for event in log.read() if event.kind == "note"]
    return {note["digest"]: Undelivered(**note) for note in notes if note is not None}


def card_of_model(model: Delivered) -> Card:
    """Read the card of a delivered model."""
    return Card.loads((Path(model.path) / CARD).read_bytes())
