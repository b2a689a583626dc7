"""What the script of the page works with, as compact JSON: columns, each as long as there are trials."""

from collections.abc import Sequence
from typing import Any

from formwright.core.records import Objective
from formwright.report.facts import StudyFacts
from formwright.report.figures import kind_of
from formwright.report.models import BESIDE, FinalModel
from formwright.report.predictions import Predictions
from formwright.report.rows import TrialRow
from formwright.report.sketch import Sketches
from formwright.report.space_map import SpaceMap

_STATES = {"finished": 0, "pending": 1, "failed": 2}


def page_data(facts: StudyFacts) -> dict[str, Any]:
    """Give the trials, their designs and what is drawn around them."""
    rows = facts.trials
    return {
        "goals": [{"name": goal.name, "direction": goal.direction} for goal in facts.goals],
        "limits": [{"name": limit.name, "bound": limit.bound} for limit in facts.limits],
        "best": facts.best,
        "front": list(facts.front),
        "models": [_model(model) for model in facts.models if model.role != "earlier"],
        "progress": {"number": facts.progress.by_number, "seconds": facts.progress.by_seconds},
        "values": _values(facts),
        "model_values": _model_values(facts),
        "trials": _columns(rows),
        "reasons": {row.number: row.reason for row in rows if row.reason},
        "designs": _designs(rows),
        "map": _map(facts.space_map),
        "predictions": _predictions(facts.predictions),
    }


def value_names(rows: Sequence[TrialRow], goals: Sequence[Objective]) -> list[str]:
    """List everything that was measured or counted: goals first, then other metrics, then costs."""
    metrics = [name for row in rows for name in row.metrics]
    costs = [name for row in rows[:1] for name in row.costs]
    named = dict.fromkeys([*(goal.name for goal in goals), *metrics, *costs])
    return sorted(named, key=lambda name: name in costs and name not in [goal.name for goal in goals])


def _values(facts: StudyFacts) -> list[dict[str, Any]]:
    return [
        {"name": name, "kind": kind_of(name), "of": [_short(row.values.get(name)) for row in facts.trials]}
        for name in value_names(facts.trials, facts.goals)
    ]


def _model_values(facts: StudyFacts) -> list[dict[str, str]]:
    """List what was measured of the final models alone: they can be drawn along it, though no trial can."""
    known = value_names(facts.trials, facts.goals)
    names = dict.fromkeys(name for model in facts.models for name in model.costs if name not in known)
    return [{"name": name, "kind": kind_of(name)} for name in names]


def _columns(rows: Sequence[TrialRow]) -> dict[str, list[Any]]:
    return {
        "number": [row.number for row in rows],
        "state": [_STATES[row.state] for row in rows],
        "kept": [int(row.feasible) for row in rows],
        "digest": [row.digest for row in rows],
        "parent": [row.parent for row in rows],
        "budget": [row.budget for row in rows],
        "steps": [row.steps for row in rows],
        "seconds": [_short(row.seconds) for row in rows],
        "elapsed": [_short(row.elapsed) for row in rows],
        "worker": [row.worker for row in rows],
        "finished": [None if row.finished is None else round(row.finished) for row in rows],
    }


def _designs(rows: Sequence[TrialRow]) -> dict[str, Any]:
    sketches = Sketches()
    drawn = [sketches.add(row.card) for row in rows]
    swatches = [{"name": one.name, "colour": one.colour, "filled": one.filled} for one in sketches.swatches]
    return {"of": drawn, "layers": sketches.layers, "phrases": sketches.phrases, "swatches": swatches}


def _map(found: SpaceMap) -> dict[str, Any] | None:
    if found.hidden:
        return None
    spots = [[spot.number, spot.x, spot.y] for spot in found.spots]
    return {"spots": spots, "x": [x for x, _ in found.others], "y": [y for _, y in found.others]}


def _predictions(found: Predictions) -> list[list[float | None]]:
    return [[guess.number, _short(guess.mean), _short(guess.low), _short(guess.high)] for guess in found.guesses]


def _model(model: FinalModel) -> dict[str, Any]:
    """Give a final model with what it was trained for: its scores are not those of a trial, which had fewer steps."""
    steps = "" if not model.steps else f" after {model.steps:,.0f} steps"
    known = {"params": model.params, **model.costs, **model.validation}
    values = {name: value for name, value in known.items() if value is not None}
    return {"name": f"{model.name}{steps}", "baseline": model.role in BESIDE, "values": values}


def _short(value: float | None) -> float | None:
    """Round to what can be seen, so that the page stays small; counts stay exact."""
    if value is None or value == int(value):
        return None if value is None else int(value)
    return float(f"{value:.6g}")
