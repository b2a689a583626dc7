"""A study as plain JSON facts, and why it ended without a model."""

import re
import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from math import inf
from typing import Any

from formwright.arch.card import Card
from formwright.core.records import Objective, Trial
from formwright.cost import COSTS, cost
from formwright.pipeline.delivered import undelivered
from formwright.pipeline.limits import ALWAYS
from formwright.pipeline.run_events import so_far
from formwright.pipeline.study_place import Opened
from formwright.search.scores import front
from formwright.study.events import noted_warnings
from formwright.study.replay import Replay
from formwright.study.study import searched


def study_json(opened: Opened) -> dict[str, Any]:
    """Give a study: its configuration, its trials, the best of them, and what it cost."""
    events, (replay, ledger) = opened.log.read(), so_far(opened)
    objectives = [Objective.parse(text) for text in (*opened.search.objectives, *opened.search.limits)]
    history, notes = replay.history, [event for event in events if event.kind == "note"]
    best = front(history, objectives) if history.finished else ()
    return {
        "kind": "study",
        "name": opened.place.name,
        "config": {**searched(opened.log.config), "stop": asdict(opened.search.stop)},  # which a resumed run may change
        "data_warnings": noted_warnings(events),
        "trials": [_trial(trial, opened.search.length) for trial in history.trials],
        "best": [trial.number for trial in best],
        "seconds": ledger.elapsed,
        "spent": {"seconds": ledger.spent.seconds, "steps": ledger.spent.steps, "macs": ledger.spent.macs},
        "delivery": {"seconds": sum(float(one.data.get("spent", {}).get("seconds", 0.0)) for one in notes)},
    }


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


_SHOWN = 3  # reasons that are reported, the most common first
_CHANGE = "change what these reasons name (a limit, the learning rate, the batch), and run again in another folder"
_LOOSEN = "loosen the limit that these reasons name, and run again in another folder"
_OTHERS = " (and with other numbers)"
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*(?:e[+-]?\d+)?")


@dataclass(frozen=True)
class NoModel:
    """Say why there is no model, the most common reasons of failures with their counts, and what to try."""

    why: str
    failures: tuple[tuple[int, str], ...]
    advice: tuple[str, ...]

    def __str__(self) -> str:
        lines = [f"no model was delivered: {self.why}"]
        lines += [f"  {count} times: {reason}" if count > 1 else f"  once: {reason}" for count, reason in self.failures]
        return "\n".join([*lines, "what to try:", *(f"  {line}" for line in self.advice)])


def why_no_model(opened: Opened) -> NoModel:
    """Find out from the log of a study why it delivered nothing."""
    history = opened.history()
    failed = [trial.reason for trial in history.trials if trial.state == "failed"]
    if lost := undelivered(opened.log):
        why = f"the final training of all {len(lost)} chosen designs failed"
        return NoModel(why, _common(one.reason for one in lost.values()), (_CHANGE, _all_trials(opened)))
    if history.finished:
        limits = [Objective.parse(text) for text in (*opened.search.limits, *opened.deliver.targets.values())]
        broken = [line for limit in limits if (line := _broken(limit, history.finished))]
        why = f"none of the {len(history.finished)} designs that were evaluated keeps all limits"
        return NoModel(why, _common(failed), (*broken, _more_trials(opened)))
    if failed and Replay.of(opened.log.read(), None).ledger(0.0).refused == len(history.trials):
        why = f"all {len(failed)} designs were measured beyond a limit, and none was evaluated"
        return NoModel(why, _common(failed), (_LOOSEN, _more_trials(opened)))
    if failed:
        return NoModel(f"all {len(failed)} trials failed", _common(failed), (_CHANGE, _all_trials(opened)))
    return NoModel("no trial was finished", (), (_more_trials(opened), "loosen the limits, if there are any"))


def _common(reasons: Iterable[str]) -> tuple[tuple[int, str], ...]:
    """Give the most common reasons; those that differ in numbers only are one, of which the first is the example."""
    wordings: dict[str, Counter[str]] = {}
    for reason in reasons:
        wordings.setdefault(_NUMBER.sub("N", reason), Counter())[reason] += 1
    common = sorted(wordings.values(), key=lambda some: -some.total())[:_SHOWN]
    return tuple((some.total(), next(iter(some)) + _OTHERS * (len(some) > 1)) for some in common)


def _broken(limit: Objective, trials: Sequence[Trial]) -> str:
    """Say how many designs break a limit and how near the nearest comes; empty where all keep it."""
    values = [trial.observation.metrics.get(limit.name) for trial in trials if trial.observation is not None]
    missed = [value for value in values if value is not None and not limit.meets(value)]
    if not missed:
        return ""
    near = min(missed) if limit.direction == "min" else max(missed)
    return f"loosen {limit}: {len(missed)} of {len(trials)} designs miss it, the nearest has {near:.4g}"


def _more_trials(opened: Opened) -> str:
    return f"evaluate more designs: formwright resume {shlex.quote(opened.place.typed_folder)} --trials N"


def _all_trials(opened: Opened) -> str:
    return f"look at all trials and their reasons: formwright show {shlex.quote(opened.place.typed_folder)}"
