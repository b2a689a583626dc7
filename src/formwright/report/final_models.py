"""The final models of a study, read from its log."""

import math
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from formwright.pipeline.conclusion import COMPARED, Comparison
from formwright.pipeline.delivered import last_session
from formwright.study.events import Event
from formwright.tasks.bootstrap import Evidence

REFERENCE_ROLES = ("teacher", "baseline")  # models to compare with, not found by the search


@dataclass(frozen=True)
class FinalModel:
    """A fully trained model: a found design, a hand-made `baseline`, or the `teacher`.

    A model with the role `earlier` was delivered before the study was extended and found better designs. `costs` are
    counted, or measured on a device, by their names. `evidence` has the confidence intervals of each split.
    """

    name: str
    role: str
    digest: str = ""
    path: str = ""
    params: float | None = None
    steps: float | None = None
    validation: Mapping[str, float] = field(default_factory=dict, hash=False)
    test: Mapping[str, float] = field(default_factory=dict, hash=False)
    costs: Mapping[str, float] = field(default_factory=dict, hash=False)
    evidence: Mapping[str, Evidence] = field(default_factory=dict, hash=False)

    @property
    def split(self) -> str:
        """Return the split to report: test if it was opened, else validation."""
        return "test" if self.test else "validation"

    def scores(self, split: str) -> Mapping[str, float]:
        return self.test if split == "test" else self.validation


def final_models(events: Iterable[Event]) -> tuple[FinalModel, ...]:
    """Read the delivered models, the last note of each name, ordered by role, teacher first."""
    known = list(events)
    noted = [event.data["model"] for event in known if event.kind == "note" and "model" in event.data]
    models = {model.name: model for model in map(_model, noted)}.values()
    session = last_session(known)
    if session is None:
        return _ordered(models)
    measured = [numbers_in(session.of(model.name, model.digest)) for model in models]
    return _ordered(replace(one, costs={**one.costs, **more}) for one, more in zip(models, measured, strict=True))


def mark_earlier(models: Iterable[FinalModel], wanted: Collection[str]) -> tuple[FinalModel, ...]:
    """Give the role `earlier` to found models whose digest is no longer among the `wanted` ones."""
    return _ordered(
        replace(one, role="earlier") if one.role in ("best", "front") and one.digest not in wanted else one
        for one in models
    )


def undeliverable(events: Iterable[Event]) -> set[str]:
    """Return the digests of the designs whose final training failed."""
    return {event.data["undelivered"]["digest"] for event in events if "undelivered" in event.data}


def command_lines(events: Iterable[Event]) -> str:
    """Return the distinct command lines that made the study, one per line; empty if none was noted."""
    noted = [event.data["command"] for event in events if event.kind == "note" and "command" in event.data]
    return "\n".join(dict.fromkeys(map(str, noted)))


def number_in(note: Mapping[str, Any], name: str) -> float | None:
    return numbers_in(note).get(name)


def numbers_in(values: Any) -> dict[str, float]:
    """Return the finite numbers of a note by name; NaN and infinity cannot be drawn."""
    pairs = values.items() if isinstance(values, Mapping) else ()
    return {name: value for name, value in pairs if isinstance(value, int | float) and math.isfinite(value)}


def _ordered(models: Iterable[FinalModel]) -> tuple[FinalModel, ...]:
    places = {"teacher": -1, "best": 0, "front": 1, "earlier": 3, "baseline": 4}
    return tuple(sorted(models, key=lambda model: places.get(model.role, 2)))


def _model(note: Mapping[str, Any]) -> FinalModel:
    return FinalModel(
        name=str(note.get("name", "unnamed")),
        role=str(note.get("role", "")),
        digest=str(note.get("digest") or ""),
        path=str(note.get("path") or ""),
        params=number_in(note, "params"),
        steps=number_in(note, "steps"),
        validation=numbers_in(note.get("validation")),
        test=numbers_in(note.get("test")),
        costs=numbers_in(note.get("costs")),
        evidence=evidence_in(note),
    )


def evidence_in(note: Mapping[str, Any]) -> dict[str, Evidence]:
    """Read the confidence intervals of a model's scores; empty if the note has none."""
    try:
        return {str(split): Evidence.from_json(data) for split, data in dict(note["evidence"]).items()}
    except (KeyError, TypeError, ValueError, AttributeError):
        return {}


def comparisons_in(events: Iterable[Event]) -> dict[str, Comparison]:
    """Read comparisons with the baseline or the teacher by model name, skipping unreadable notes."""
    found = {}
    for event in events:
        if event.kind == "note" and COMPARED in event.data:
            with suppress(KeyError, TypeError, ValueError, AttributeError):
                one = Comparison.from_json(event.data[COMPARED])
                found[one.model] = one
    return found
