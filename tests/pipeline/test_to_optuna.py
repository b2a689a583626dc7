"""A study in Optuna's storage: everything that has an outcome, once, as Optuna's own tools read it."""

import sqlite3
import sys
import warnings
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import optuna
import pytest
from tests.pipeline.cases import films_study

from formwright.core.errors import IllegalInput, MissingExtra
from formwright.core.records import Observation, Request, Spent
from formwright.core.rng import derive
from formwright.pipeline.designs import find_space
from formwright.pipeline.study_place import Opened
from formwright.pipeline.to_optuna import to_optuna
from formwright.study.replay import asked_data
from formwright.testing.toy_problem import Toy

BOTH = {"objectives": ("accuracy:max", "params:min")}


@pytest.fixture
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opened]:
    with films_study(tmp_path, trials=30, **getattr(request, "param", {})).open() as found:
        yield found


@pytest.fixture
def target(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'optuna.db'}"


def record(opened: Opened, numbers: range) -> None:
    """Add trials to the log as a worker does: every fifth fails, every seventh has no outcome yet."""
    space = find_space(opened.search.space)
    for number in numbers:
        design = space.sample(derive(0, number))
        request = Request(space.card(design), design=design)
        opened.log.ask(number, "one", 60.0, asked_data(request, space, 0))
        if number % 5 == 4:
            opened.log.finish(number, "one", "failed", {"reason": "the loss is nan"})
        elif number % 7 != 6:
            found = Toy().evaluate(request)
            told = Observation(found.metrics, Spent(1.5, 20, 1000))
            opened.log.finish(number, "one", "told", {"observation": told.to_json()})


def load(opened: Opened, target: str) -> Any:
    return optuna.load_study(study_name=opened.place.name, storage=target)


def exported(opened: Opened, target: object) -> int:
    return to_optuna(opened, str(target), find_space(opened.search.space))


def ended(numbers: range) -> list[int]:
    return [number for number in numbers if number % 5 == 4 or number % 7 != 6]


def test_optuna_reads_the_same_trials_and_the_choices_of_their_designs(opened: Opened, target: str) -> None:
    record(opened, range(20))
    assert exported(opened, target) == len(ended(range(20)))
    study = load(opened, target)
    assert [trial.user_attrs["number"] for trial in study.trials] == ended(range(20))
    assert [trial.state.name for trial in study.trials] == [
        "FAIL" if number % 5 == 4 else "COMPLETE" for number in ended(range(20))
    ]
    told = {event.number: event.data["observation"] for event in opened.log.read() if event.kind == "told"}
    assert study.best_value == max(found["metrics"]["accuracy"] for found in told.values())
    assert study.direction.name == "MAXIMIZE"
    assert study.metric_names == ["accuracy"]
    best = study.best_trial.user_attrs
    assert best["costs"]["params"] == told[best["number"]]["metrics"]["params"]
    assert best["seconds"] == 1.5
    assert [trial.user_attrs["reason"] for trial in study.trials if trial.state.name == "FAIL"] == [
        "the loss is nan"
    ] * 4
    record(opened, range(20))
    exported(opened, target)
    space = find_space(opened.search.space)
    for trial in load(opened, target).trials:
        design = space.sample(derive(0, trial.user_attrs["number"]))
        layers = design["layers"]
        assert trial.params["layers.length"] == len(layers)
        assert trial.params["layers[0].feed_forward"] == layers[0]["feed_forward"]
        assert trial.params["layers[0].mixer"] == layers[0]["mixer"].tag
        assert ("layers[1].mixer" in trial.params) == (len(layers) == 2)
        assert trial.user_attrs["digest"] == space.card(design).digest


def test_times_are_those_of_the_log(opened: Opened, target: str) -> None:
    record(opened, range(2))
    exported(opened, target)
    at = {(event.kind, event.number): datetime.fromtimestamp(event.at) for event in opened.log.read()}
    for trial in load(opened, target).trials:
        assert trial.datetime_start == at["claimed", trial.number]
        assert trial.datetime_complete == at["told", trial.number]


def test_a_second_export_adds_what_is_new(opened: Opened, target: str, tmp_path: Path) -> None:
    record(opened, range(10))
    assert exported(opened, target) == 9
    assert exported(opened, target) == 0
    record(opened, range(10, 20))
    opened.log.finish(6, "one", "failed", {"reason": "late"})
    assert exported(opened, str(tmp_path / "optuna.db")) == len(ended(range(10, 20))) + 1
    numbers = [trial.user_attrs["number"] for trial in load(opened, target).trials]
    assert sorted(numbers) == sorted([*ended(range(20)), 6])
    assert len(set(numbers)) == len(numbers)


def test_optuna_tells_which_choices_matter(opened: Opened, target: str) -> None:
    record(opened, range(30))
    exported(opened, target)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        evaluator = optuna.importance.PedAnovaImportanceEvaluator()
        importance = optuna.importance.get_param_importances(load(opened, target), evaluator=evaluator)
    assert {"layers.length", "layers[0].feed_forward", "layers[0].mixer"} <= importance.keys()
    assert sum(importance.values()) == pytest.approx(1.0)


@pytest.mark.parametrize("opened", [BOTH | {"limits": ("params<=5000",)}], indirect=True)
def test_several_goals_and_limits(opened: Opened, target: str) -> None:
    record(opened, range(20))
    exported(opened, target)
    study = load(opened, target)
    assert [direction.name for direction in study.directions] == ["MAXIMIZE", "MINIMIZE"]
    finished = [trial for trial in study.trials if trial.state.name == "COMPLETE"]
    assert {trial.constraints["params<=5000.0"] > 0 for trial in finished} == {True, False}
    for trial in finished:
        assert (trial.constraints["params<=5000.0"] > 0) == (trial.values[1] > 5000)
    assert all(trial.values[1] <= 5000 for trial in study.best_trials)


def test_our_own_database_is_not_written_to(opened: Opened) -> None:
    path = opened.place.storage
    with pytest.raises(IllegalInput, match="holds studies of formwright; name another"):
        exported(opened, path)
    with sqlite3.connect(path) as connection:
        names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    connection.close()
    assert "trials" not in names


def test_another_study_of_the_name_is_left_alone(opened: Opened, target: str) -> None:
    optuna.create_study(storage=target, study_name=opened.place.name, direction="minimize")
    with pytest.raises(IllegalInput, match="another study called 'films'"):
        exported(opened, target)
    assert load(opened, target).trials == []


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("nonsense://x", "nonsense"),
        ("sqlite:///", "is forgotten at once; name a file"),
        ("sqlite:///:memory:", "is forgotten at once; name a file"),
        ("postgresql+psycopg://me:secret@host:port/x", "cannot read the URL"),
        ("sqlite:////absent/folder/x.db", "unable to open"),
        ("postgresql+psycopg://me:secret@127.0.0.1:1/x", "refused"),
    ],
)
def test_a_database_that_cannot_be_written_is_a_users_error(opened: Opened, target: str, reason: str) -> None:
    with pytest.raises(IllegalInput, match=reason) as caught:
        exported(opened, target)
    assert "secret" not in str(caught.value)


def test_a_missing_optuna_is_said(opened: Opened, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(MissingExtra, match=r"formwright\[optuna\]"):
        exported(opened, target)
