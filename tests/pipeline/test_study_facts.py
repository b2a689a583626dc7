import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.pipeline.cases import create, quick, search_of, work
from tests.study.cases import Stepping, new_log, run, toy_study

from formwright.arch.card import Card
from formwright.core.errors import EvaluationFailed, IllegalInput
from formwright.core.records import Request
from formwright.cost import macs, params
from formwright.pipeline.evaluators import UntrainedScores
from formwright.pipeline.run import PipelineRun, RunOptions
from formwright.pipeline.run_events import extended, noted
from formwright.pipeline.study_facts import NoModel, study_json, why_no_model
from formwright.pipeline.study_place import Opened, Place
from formwright.study.replay import asked_data
from formwright.study.stop import Stop

SPACE_FILE = "from formwright.testing.toy_problem import small\nSMALL = small()\n"


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opened]:
    """Give a study of the toy problem at its place."""
    (tmp_path / "mine.py").write_text(SPACE_FILE, encoding="utf-8")
    config = quick(space=f"{tmp_path / 'mine.py'}:SMALL", objectives=("accuracy:max",), limits=("params<=1e9",))
    with create(tmp_path / "toy", config).open() as found:
        yield found


def test_an_empty_study_has_its_configuration_and_counts_final_trainings_apart(opened: Opened) -> None:
    facts = study_json(opened)
    assert (facts["kind"], facts["name"], facts["trials"], facts["best"]) == ("study", "toy", [], [])
    config = facts["config"]
    assert (config["objectives"], config["limits"], config["stop"]["trials"]) == (["accuracy:max"], ["params<=1e9"], 4)
    assert (config["searcher"]["name"], config["evaluator"]["name"], config["steps"]) == ("random", "proxy", 5)
    assert facts["spent"] == {"seconds": 0.0, "steps": 0, "macs": 0}
    assert facts["delivery"] == {"seconds": 0.0}
    for seconds in (1.5, 2.0):
        opened.log.append("note", "me", {"model": {"name": "trial-0"}, "spent": {"seconds": seconds}})
    opened.log.append("note", "me", {"command": "formwright search"})
    facts = study_json(opened)
    assert (facts["delivery"], facts["spent"]["seconds"]) == ({"seconds": 3.5}, 0.0)


def test_a_study_is_told_in_full(opened: Opened, tmp_path: Path) -> None:
    numbers = iter(range(9))

    def fail_second(_: Request) -> None:
        if next(numbers) == 1:
            raise EvaluationFailed("no luck")

    study = toy_study(opened.log, tmp_path, "local", stop=5, evaluator=Stepping(before=fail_second))
    run(study)
    trials = study.history().trials
    opened.log.ask(5, "me", 60, asked_data(trials[0].request, study.space, 0))
    facts = json.loads(json.dumps(study_json(opened)))
    assert [trial["number"] for trial in facts["trials"]] == list(range(6))
    assert [trial["state"] for trial in facts["trials"]] == ["finished", "failed", *["finished"] * 3, "pending"]
    assert [trial["digest"] for trial in facts["trials"][:5]] == [trial.request.card.digest for trial in trials]
    assert [trial["parent"] for trial in facts["trials"][:5]] == [trial.request.parent for trial in trials]
    assert [trial["steps"] for trial in facts["trials"][:5]] == [trial.request.budget.steps for trial in trials]
    first, failed = facts["trials"][0], facts["trials"][1]
    observation = trials[0].observation
    assert observation is not None
    assert first["metrics"] == {"accuracy": observation.metrics["accuracy"]}
    assert first["costs"] == {"params": observation.metrics["params"]}
    assert (first["seconds"], failed["seconds"], failed["reason"]) == (0.0, None, "no luck")
    assert failed["metrics"] == {}
    for trial in (failed, facts["trials"][5]):
        card = trials[trial["number"] % 5].request.card
        assert isinstance(card, Card)
        assert trial["costs"] == {"params": params(card), "macs": macs(card, opened.search.training.length)}
    scores = {trial["number"]: trial["metrics"]["accuracy"] for trial in facts["trials"] if trial["metrics"]}
    assert scores[facts["best"][0]] == max(scores.values())
    assert facts["spent"]["steps"] == sum(trial.observation.spent.steps for trial in trials if trial.observation)
    assert 0 < facts["seconds"] < 60


def test_the_end_is_that_of_the_last_run_and_pauses_are_not_counted(opened: Opened, tmp_path: Path) -> None:
    run(toy_study(opened.log, tmp_path, stop=2))
    before = study_json(opened)["seconds"]
    assert study_json(opened)["seconds"] == before
    opened.log.append("started", "me", {"begins": True, "stop": {"trials": 9, "seconds": 2.5}})
    stop = study_json(opened.again())["config"]["stop"]
    assert (stop["trials"], stop["seconds"], stop["failures"]) == (9, 2.5, opened.search.stop.failures)


@pytest.fixture
def why(tmp_path: Path) -> Any:
    log = new_log(tmp_path)
    study = toy_study(log, tmp_path, stop=6)
    run(study)

    def found(*limits: str) -> tuple[NoModel, dict[str, list[float]]]:
        stages = {"search": SimpleNamespace(limits=limits), "deliver": SimpleNamespace(targets={})}
        opened = SimpleNamespace(history=study.history, log=log, place=Place(tmp_path, "sqlite://", "toy"), **stages)
        scores = [trial.observation.metrics for trial in study.history().finished if trial.observation]
        return why_no_model(cast(Any, opened)), {name: [one[name] for one in scores] for name in ("accuracy", "params")}

    return found


def test_limits_that_designs_break_are_to_be_loosened_to_the_nearest_miss(why: Any) -> None:
    reason, values = why("params<=1", "accuracy>=2")
    assert len(set(values["params"])) > 1
    assert f"6 of 6 designs miss it, the nearest has {min(values['params']):.4g}" in reason.advice[0]
    assert f"6 of 6 designs miss it, the nearest has {max(values['accuracy']):.4g}" in reason.advice[1]
    reason, values = why("params<=1", "accuracy<=2", f"params<={min(values['params']):.0f}")
    assert [line.split(":")[0] for line in reason.advice if line.startswith("loosen")] == [
        "loosen params<=1.0",
        f"loosen params<={float(min(values['params']))}",
    ]


def test_designs_that_are_all_beyond_a_measured_limit_are_told_apart_from_failures(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    study = replace(toy_study(log, tmp_path, stop=3), gate=lambda card: "latency_ms is 9, beyond the limit")
    run(study)
    opened: Any = SimpleNamespace(history=study.history, log=log, place=Place(tmp_path, "sqlite://", "toy"))
    reason = why_no_model(opened)
    assert "all 3 designs were measured beyond a limit" in reason.why
    assert reason.failures == ((3, "latency_ms is 9, beyond the limit"),)
    assert reason.advice[0].startswith("loosen the limit")


def test_reasons_that_differ_in_numbers_only_are_counted_together_with_an_example(tmp_path: Path) -> None:
    log, times = new_log(tmp_path), iter(("7", "8", "9"))
    study = replace(
        toy_study(log, tmp_path, stop=3), gate=lambda card: f"latency_ms is {next(times)}, beyond the limit"
    )
    run(study)
    opened: Any = SimpleNamespace(history=study.history, log=log, place=Place(tmp_path, "sqlite://", "toy"))
    ((number, reason),) = why_no_model(opened).failures
    assert (number, reason) == (3, "latency_ms is 7, beyond the limit (and with other numbers)")


def test_the_reasons_of_most_failures_come_first(tmp_path: Path) -> None:
    log, told = new_log(tmp_path), iter(("5 ms", "6 ms", "7 ms", *["wide"] * 4, *["deep"] * 2, "odd"))
    study = replace(toy_study(log, tmp_path, stop=10), gate=lambda card: next(told))
    run(study)
    opened: Any = SimpleNamespace(history=study.history, log=log, place=Place(tmp_path, "sqlite://", "toy"))
    assert why_no_model(opened).failures == ((4, "wide"), (3, "5 ms (and with other numbers)"), (2, "deep"))


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
    ("limits", "stop"),
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
def test_a_new_limit_replaces_the_one_that_ended_the_study(over: Opened, limits: dict[str, Any], stop: Stop) -> None:
    assert extended(over, limits) == stop


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


@pytest.mark.parametrize("limits", [{"trials": 1}, {"steps": 39}, {"seconds": 12.0}])
def test_less_than_is_done_is_refused(over: Opened, limits: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = SimpleNamespace(spent=SimpleNamespace(steps=40), elapsed=12.5)
    replay = SimpleNamespace(history=SimpleNamespace(trials=(0, 1)))
    monkeypatch.setattr("formwright.pipeline.run_events.so_far", lambda _: (replay, ledger))
    with pytest.raises(IllegalInput, match=next(iter(limits))):
        extended(over, limits)


def test_a_run_in_another_process_is_at_the_same_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run = PipelineRun(quick(), Path("out"), RunOptions(workers=3), storage="postgresql://host/all", study_name="mine")
    found = run.for_process()
    monkeypatch.chdir("/")
    assert (found.pipeline, found.options, found.out) == (run.pipeline, run.options, tmp_path / "out")
    stage = search_of(found.pipeline)
    assert stage.place(found.stage(stage)) == Place(tmp_path / "out", "postgresql://host/all", "mine")
