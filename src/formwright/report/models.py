"""The final models of a study, as its log notes them."""

import math
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from formwright.study.conclusion import COMPARED, Comparison
from formwright.study.events import Event
from formwright.study.sitting import last_sitting
from formwright.tasks.evidence import Evidence

BESIDE = ("teacher", "baseline")  # the roles of models that were not found, but are there to compare with


@dataclass(frozen=True)
class FinalModel:
    """A model that was trained to the end: one that was found, or a `baseline` made by hand or a `teacher` beside it.

    A model with the role `earlier` was delivered before the study went on and found better designs. `costs` are what
    was measured or counted of it, by names such as `latency_ms`. `evidence` says for each split how sure the scores
    are.
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
        """Name the split whose scores count: test, where it was opened."""
        return "test" if self.test else "validation"

    def scores(self, split: str) -> Mapping[str, float]:
        """Give the scores of a split."""
        return self.test if split == "test" else self.validation


def final_models(events: Iterable[Event]) -> tuple[FinalModel, ...]:
    """List the noted models, the last note of each name, in the order of their roles, a teacher first."""
    known = list(events)
    models = {model.name: model for model in map(_model, filter(_has_model, known))}
    sitting = last_sitting(known)
    if sitting is not None:
        models = {
            name: replace(model, costs={**model.costs, **numbers_in(sitting.of(name, model.digest))})
            for name, model in models.items()
        }
    return _ordered(models.values())


def told_apart(models: Iterable[FinalModel], wanted: Collection[str]) -> tuple[FinalModel, ...]:
    """Call those models `earlier` that were found, but whose digest is not among those of the best designs now."""
    found = ("best", "front")
    return _ordered(
        replace(model, role="earlier") if model.role in found and model.digest not in wanted else model
        for model in models
    )


def undeliverable(events: Iterable[Event]) -> set[str]:
    """Give the digests of the designs whose final training failed."""
    return {event.data["undelivered"]["digest"] for event in events if "undelivered" in event.data}


def commands(events: Iterable[Event]) -> str:
    """Give the command lines that made the study, each once and on a line of its own; empty when none was noted."""
    noted = [event.data["command"] for event in events if event.kind == "note" and "command" in event.data]
    return "\n".join(dict.fromkeys(map(str, noted)))


def number_in(note: Mapping[str, Any], name: str) -> float | None:
    """Read a number of a note; None where there is none."""
    return numbers_in(note).get(name)


def numbers_in(values: Any) -> dict[str, float]:
    """Read those values of a note that are numbers; neither NaN nor infinity can be drawn."""
    pairs = values.items() if isinstance(values, Mapping) else ()
    return {name: value for name, value in pairs if isinstance(value, int | float) and math.isfinite(value)}


def _has_model(event: Event) -> bool:
    return event.kind == "note" and "model" in event.data


def _ordered(models: Iterable[FinalModel]) -> tuple[FinalModel, ...]:
    places = {"teacher": -1, "best": 0, "front": 1, "earlier": 3, "baseline": 4}
    return tuple(sorted(models, key=lambda model: places.get(model.role, 2)))


def _model(event: Event) -> FinalModel:
    note = event.data["model"]
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
    """Read how sure the scores of a model are; nothing where a note does not say it."""
    try:
        return {str(split): Evidence.from_json(told) for split, told in dict(note["evidence"]).items()}
    except (KeyError, TypeError, ValueError, AttributeError):
        return {}


def comparisons_in(events: Iterable[Event]) -> dict[str, Comparison]:
    """Read how models compare with the baseline or the teacher, by their names; what cannot be read is left out."""
    found = {}
    for event in events:
        if event.kind == "note" and COMPARED in event.data:
            with suppress(KeyError, TypeError, ValueError, AttributeError):
                one = Comparison.from_json(event.data[COMPARED])
                found[one.model] = one
    return found
