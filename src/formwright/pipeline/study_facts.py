"""A study as plain JSON facts, for the command line and for other programs."""

from dataclasses import asdict
from math import inf
from typing import Any

from formwright.arch.card import Card
from formwright.core.records import Objective, Trial
from formwright.cost import COSTS, cost
from formwright.pipeline.limits import ALWAYS
from formwright.pipeline.run_folder import Opened
from formwright.search.scores import front
from formwright.study.events import Event, noted_warnings
from formwright.study.ledger import Clock
from formwright.study.replay import Replay
from formwright.study.stage_options import searched


def study_json(opened: Opened) -> dict[str, Any]:
    """Give a study: its configuration, its trials, the best of them, and what it cost."""
    replay, clock = Replay(opened.space), Clock()
    events = opened.log.read()
    replay.feed(events)
    clock.feed(events)
    objectives = [Objective.parse(text) for text in (*opened.search.objectives, *opened.search.limits)]
    history = replay.history
    best = front(history, objectives) if history.finished else ()
    ledger = replay.ledger(clock.elapsed(clock.last))
    return {
        "kind": "study",
        "name": opened.place.name,
        "config": {**searched(opened.log.config), "stop": asdict(opened.search.stop)},  # which a resumed run may change
        "data_warnings": noted_warnings(events),
        "trials": [_trial(trial, opened.search.length) for trial in history.trials],
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
    costs = {name: metrics.pop(name) for name in COSTS.names() if name in metrics}
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


def best_trials(facts: dict[str, Any]) -> list[dict[str, Any]]:
    """List the trials of the front, or, for a single goal, those within the limits from the best on."""
    trials, goals = facts["trials"], [text.partition(":")[0] for text in facts["config"]["objectives"]]
    if len(goals) > 1:
        return [trials[number] for number in facts["best"]]
    limits = [Objective.parse(text) for text in facts["config"]["limits"]]
    values = {trial["number"]: trial["metrics"] | trial["costs"] for trial in _longest(trials)}
    kept = [
        number
        for number, found in values.items()
        if all(limit.meets(found[limit.name]) for limit in limits if limit.name in found)
    ]
    highest = facts["config"]["objectives"][0].endswith(":max")
    return [trials[number] for number in sorted(kept, key=lambda number: values[number][goals[0]], reverse=highest)]


def _longest(trials: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """List the finished trials with the largest budget: scores after fewer steps do not compare with theirs."""
    finished = [trial for trial in trials if trial["state"] == "finished"]
    budgets = {trial["number"]: inf if trial["steps"] is None else trial["steps"] for trial in finished}
    return [trial for trial in finished if budgets[trial["number"]] == max(budgets.values())]
