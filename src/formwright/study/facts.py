"""A study as plain JSON facts, for the command line and for other programs."""

from typing import Any

from formwright.arch.card import Card
from formwright.core.records import Objective, Trial
from formwright.cost import COSTS
from formwright.search.fronts import front
from formwright.study.events import Event, noted_warnings
from formwright.study.ledger import Clock
from formwright.study.limits import ALWAYS, LATENCY, cost
from formwright.study.place import Opened
from formwright.study.replay import Replay
from formwright.study.spaces import readable_space


def study_json(opened: Opened) -> dict[str, Any]:
    """Give a study: its configuration, its trials, the best of them, and what it cost."""
    replay, clock = Replay(readable_space(opened.config.space)), Clock()
    events = opened.log.read()
    replay.feed(events)
    clock.feed(events)
    objectives = [Objective.parse(text) for text in (*opened.config.objectives, *opened.config.limits)]
    history = replay.history
    best = front(history, objectives) if history.finished else ()
    ledger = replay.ledger(clock.elapsed(clock.last))
    return {
        "kind": "study",
        "name": opened.place.name,
        "config": opened.config.to_json(),
        "data_warnings": noted_warnings(events),
        "trials": [_trial(trial, opened.config.training.length) for trial in history.trials],
        "best": [trial.number for trial in best],
        "seconds": ledger.elapsed,
        "spent": {"seconds": ledger.spent.seconds, "steps": ledger.spent.steps, "macs": ledger.spent.macs},
        "delivery": {"seconds": sum(_delivery_seconds(event) for event in events)},
    }


def _delivery_seconds(event: Event) -> float:
    """Give how long a final training took that an event notes, whatever came of it."""
    return float(event.data.get("spent", {}).get("seconds", 0.0)) if event.kind == "note" else 0.0


def _trial(trial: Trial, length: int) -> dict[str, Any]:
    found = trial.observation
    metrics = dict(found.metrics) if found is not None else {}
    costs = {name: metrics.pop(name) for name in [*COSTS.names(), LATENCY] if name in metrics}
    if found is None and isinstance(trial.request.card, Card):  # whatever becomes of a trial, its card tells these
        costs = {name: cost(trial.request.card, name, length) for name in ALWAYS}
    return {
        "number": trial.number,
        "state": trial.state,
        "digest": trial.request.card.digest,
        "metrics": metrics,
        "costs": costs,
        "seconds": found.spent.seconds if found is not None else None,
        "parent": trial.request.parent,
        "steps": trial.request.budget.steps,
        "reason": trial.reason,
    }
