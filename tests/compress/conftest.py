"""Stages of a tiny compression, ready to go on from the search space."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.compress.test_trainings import conduct
from tests.compress.tiny import bert, job

from formwright.compress.folders import RECORD, Folders
from formwright.compress.pacing import Pacing, Schedule
from formwright.compress.plan import Plan
from formwright.compress.stages import Stages
from formwright.compress.trainings import unshown
from formwright.nn.task_model import TaskModel
from formwright.space.zoo.elastic_choices import ElasticChoices
from formwright.study.place import Place
from formwright.supernet.automatic import Met

PLAN = Plan(6, 6, 4)
Made = tuple[Stages, TaskModel, ElasticChoices, list[Met]]


@pytest.fixture
def stages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Made]:
    """Give a function that goes on to the space; no other runtime than torch is to be found."""
    monkeypatch.setitem(sys.modules, "onnx", None)
    model = bert(tmp_path)

    def go_on(**changes: Any) -> Made:
        started = job(tmp_path, model=model, **changes).started()
        made = Stages(started, Pacing(Schedule(PLAN)), started.costs(None), Folders(tmp_path / "out"))
        made.folders.out.mkdir(exist_ok=True)
        (made.folders.out / RECORD).touch()
        known = made.teacher(conduct(), unshown)
        return made, known, *made.search_space()

    return go_on


def placed(made: Made) -> Place:
    started = made[0].started
    return made[0].place(made[2], made[3], started.limits(made[0].costs))
