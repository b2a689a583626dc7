from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.pipeline.cases import create, quick, search_of, work

from formwright.core.errors import IllegalInput
from formwright.pipeline.evaluators import UntrainedScores
from formwright.pipeline.run import PipelineRun, RunOptions
from formwright.pipeline.run_events import extended, noted
from formwright.pipeline.run_folder import Opened, Place
from formwright.study.stop import Stop


@pytest.fixture
def over(tmp_path: Path) -> Iterator[Opened]:
    """Give a study that ended after its two trials; its other limits are far away."""
    stop = Stop(trials=2, seconds=1000.0, patience=50, failures=7)
    config = quick(stop=stop, evaluator=UntrainedScores(("params",)), objectives=("params:max",))
    place = create(tmp_path / "study", config)
    work(place)
    with place.open() as opened:
        yield opened


@pytest.mark.parametrize(
    ("wishes", "stop"),
    [
        ({}, Stop(2, 1000.0, None, 50, 7)),
        ({"trials": None, "seconds": None}, Stop(2, 1000.0, None, 50, 7)),
        ({"trials": 9}, Stop(9, 1000.0, None, 50, 7)),
        ({"seconds": 2000.0}, Stop(None, 2000.0, None, 50, 7)),  # two trials are no end any more
        ({"steps": 60}, Stop(None, 1000.0, 60, 50, 7)),
        ({"patience": 3}, Stop(None, 1000.0, None, 3, 7)),
        ({"failures": 0}, Stop(2, 1000.0, None, 50, 0)),
    ],
)
def test_a_wish_replaces_the_limit_that_ended_the_study(over: Opened, wishes: dict[str, Any], stop: Stop) -> None:
    assert extended(over, wishes) == stop


def test_limits_that_are_not_reached_hold(tmp_path: Path) -> None:
    with create(tmp_path / "study", quick(stop=Stop(trials=2))).open() as opened:
        assert extended(opened, {"seconds": 5.0}) == Stop(2, 5.0)


def test_who_opens_the_study_sees_its_new_end(over: Opened) -> None:
    stop = extended(over, {"seconds": 2000.0})
    over.log.append("started", "me", {"begins": True, **noted(stop)})
    with over.place.open() as again:
        assert again.search.stop == stop


def test_a_study_that_ended_by_time_goes_on_to_a_number_of_trials(tmp_path: Path) -> None:
    config = quick(stop=Stop(seconds=0.001), evaluator=UntrainedScores(("params",)), objectives=("params:max",))
    place = create(tmp_path / "study", config)
    work(place)
    with place.open() as opened:
        stop = extended(opened, {"trials": 5})
        assert stop == Stop(trials=5)
        opened.log.append("started", "me", {"begins": True, **noted(stop)})
    work(place)
    with place.open() as opened:
        assert sum(event.kind == "told" for event in opened.log.read()) == 5


@pytest.mark.parametrize("wishes", [{"trials": 1}, {"steps": 39}, {"seconds": 12.0}])
def test_less_than_is_done_is_refused(over: Opened, wishes: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = SimpleNamespace(spent=SimpleNamespace(steps=40), elapsed=12.5)
    replay = SimpleNamespace(history=SimpleNamespace(trials=(0, 1)))
    monkeypatch.setattr("formwright.pipeline.run_events.so_far", lambda _: (replay, ledger))
    with pytest.raises(IllegalInput, match=next(iter(wishes))):
        extended(over, wishes)


def test_a_run_in_another_process_is_at_the_same_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run = PipelineRun(quick(), Path("out"), RunOptions(workers=3), storage="postgresql://host/all", study_name="mine")
    found = run.for_process()
    monkeypatch.chdir("/")
    assert (found.pipeline, found.options, found.out) == (run.pipeline, run.options, tmp_path / "out")
    stage = search_of(found.pipeline)
    assert stage.place(found.stage(stage)) == Place(tmp_path / "out", "postgresql://host/all", "mine")
