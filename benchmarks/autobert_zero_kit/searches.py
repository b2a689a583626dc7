"""Searches as studies, whose logs let them go on where they were killed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from autobert_zero_kit.runs import Job, Row
from autobert_zero_kit.setting import Setting, nano_space
from formwright.core.records import Objective, Trial
from formwright.search import make_searcher
from formwright.study.identity import own_name
from formwright.study.stop import Stop
from formwright.study.store import Store
from formwright.study.study import StudySetup
from formwright.study.worker import Worker
from formwright.tasks.metrics import metric


@dataclass(frozen=True)
class Arm:
    """One way to search: a searcher with options, and whether its designs share weights."""

    searcher: str
    options: Mapping[str, Any] = field(default_factory=dict, hash=False)
    shared: bool = True


RANDOM, RANDOM_SHARED, OP_NAS = "random", "random, shared", "OP-NAS, shared"
ALPHA_0, ALPHA_1 = "OP-NAS with alpha = 0, shared", "OP-NAS with alpha = 1, shared"
ARMS = {
    RANDOM: Arm("random", {"by": "gene"}, shared=False),  # drawn as the first designs of the other searches are
    RANDOM_SHARED: Arm("random", {"by": "gene"}),
    "evolution, shared": Arm("regularized-evolution"),
    OP_NAS: Arm("op-nas"),
    "OP-NAS without priorities, shared": Arm("op-nas", {"guided": False}),  # evolution differs in more than these
    ALPHA_0: Arm("op-nas", {"alpha": 0.0}),
    ALPHA_1: Arm("op-nas", {"alpha": 1.0}),
}


@contextmanager
def opened(setting: Setting, folder: Path, name: str, seed: int) -> Iterator[StudySetup]:
    """Open the study of an arm, new or begun."""
    arm, nano, space = ARMS[name], setting.nano, nano_space()
    place = folder / f"searches-{setting.digest('search')}" / f"{name.replace(', ', '-').replace(' ', '-')}-{seed}"
    place.mkdir(parents=True, exist_ok=True)
    goals = (Objective(nano.seen.metric, metric(nano.seen.metric).direction),)
    searcher = make_searcher(
        arm.searcher, space, goals, trials=nano.trials, steps=nano.short.tuning, **dict(arm.options)
    )
    with Store.open(place / "study.db", create=True) as store:
        if name not in store.studies():
            store.create_study(name, {})
        evaluator: Any = nano.evaluator(shared=arm.shared)
        yield StudySetup(store.study(name), space, searcher, evaluator, goals, Stop(nano.trials), place, seed)


def searched(setting: Setting, folder: Path, job: Job) -> Row:
    """Search, or go on with a search, to the end; give its trials."""
    with opened(setting, folder, job.name, job.seed) as study:
        study.log.append("started", own_name(), {"begins": True})
        reason = Worker(study).run()
        return {"trials": [_row(trial, study.objectives[0].name) for trial in study.history().trials], "ended": reason}


def _row(trial: Trial, score: str) -> Row:
    row: Row = {"number": trial.number, "parent": trial.request.parent, "card": trial.request.card.to_json()}
    if trial.observation is None:
        return {**row, "failure": trial.reason}
    found = trial.observation
    return {**row, "score": found.metrics[score], "steps": found.spent.steps}
