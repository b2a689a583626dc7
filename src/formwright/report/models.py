"""The final models of a study, as its log notes them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from formwright.study.events import Event


@dataclass(frozen=True)
class FinalModel:
    """A model that was trained to the end: one that was found, or the hand-made `baseline` beside it."""

    name: str
    role: str
    digest: str = ""
    path: str = ""
    params: float | None = None
    steps: float | None = None
    validation: Mapping[str, float] = field(default_factory=dict, hash=False)
    test: Mapping[str, float] = field(default_factory=dict, hash=False)


def final_models(events: Iterable[Event]) -> tuple[FinalModel, ...]:
    """List the noted models, the last note of each name, best first and baselines last."""
    notes = [event.data["model"] for event in events if event.kind == "note" and "model" in event.data]
    models = {model.name: model for model in map(_model, notes)}
    places = {"best": 0, "front": 1, "baseline": 3}
    return tuple(sorted(models.values(), key=lambda model: places.get(model.role, 2)))


def last_command(events: Iterable[Event]) -> str:
    """Give the command line that was noted last; empty when none was."""
    noted = [event.data["command"] for event in events if event.kind == "note" and "command" in event.data]
    return str(noted[-1]) if noted else ""


def _model(note: Mapping[str, Any]) -> FinalModel:
    return FinalModel(
        name=str(note.get("name", "unnamed")),
        role=str(note.get("role", "")),
        digest=str(note.get("digest") or ""),
        path=str(note.get("path") or ""),
        params=_number(note.get("params")),
        steps=_number(note.get("steps")),
        validation=_numbers(note.get("validation")),
        test=_numbers(note.get("test")),
    )


def _number(value: Any) -> float | None:
    return value if isinstance(value, int | float) else None


def _numbers(values: Any) -> dict[str, float]:
    pairs = values.items() if isinstance(values, Mapping) else ()
    return {name: value for name, value in pairs if isinstance(value, int | float)}
