import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.pipeline.cases import create, quick
from tests.study.cases import Stepping, new_log, run, toy_study

from formwright.arch.card import Card
from formwright.core.errors import EvaluationFailed
from formwright.core.records import Request
from formwright.cost import macs, params
from formwright.pipeline.run_folder import Opened
from formwright.pipeline.study_facts import NoModel, study_json, why_no_model
from formwright.study.replay import asked_data

SPACE_FILE = "from formwright.testing.toy_problem import small\nSMALL = small()\n"


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opened]:
    """Give a study of the toy problem at its place."""
    (tmp_path / "mine.py").write_text(SPACE_FILE, encoding="utf-8")
    config = quick(space=f"{tmp_path / 'mine.py'}:SMALL", objectives=("accuracy:max",), limits=("params<=1e9",))
    with create(tmp_path / "toy", config).open() as found:
        yield found


def test_an_empty_study(opened: Opened) -> None:
    facts = study_json(opened)
    assert (facts["kind"], facts["name"], facts["trials"], facts["best"]) == ("study", "toy", [], [])
    config = facts["config"]
    assert (config["objectives"], config["limits"], config["stop"]["trials"]) == (["accuracy:max"], ["params<=1e9"], 4)
    assert (config["searcher"]["name"], config["evaluator"]["name"], config["steps"]) == ("random", "proxy", 5)
    assert facts["spent"] == {"seconds": 0.0, "steps": 0, "macs": 0}


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


def test_final_trainings_are_counted_apart(opened: Opened) -> None:
    assert study_json(opened)["delivery"] == {"seconds": 0.0}
    for seconds in (1.5, 2.0):
        opened.log.append("note", "me", {"model": {"name": "trial-0"}, "spent": {"seconds": seconds}})
    opened.log.append("note", "me", {"command": "formwright search"})
    facts = study_json(opened)
    assert (facts["delivery"], facts["spent"]["seconds"]) == ({"seconds": 3.5}, 0.0)


def test_pauses_are_not_counted(opened: Opened, tmp_path: Path) -> None:
    run(toy_study(opened.log, tmp_path, stop=2))
    before = study_json(opened)["seconds"]
    assert study_json(opened)["seconds"] == before


@pytest.fixture
def why(tmp_path: Path) -> Any:
    log = new_log(tmp_path)
    study = toy_study(log, tmp_path, stop=6)
    run(study)

    def found(*limits: str) -> tuple[NoModel, dict[str, list[float]]]:
        stages = {"search": SimpleNamespace(limits=limits), "deliver": SimpleNamespace(targets={})}
        opened = SimpleNamespace(history=study.history, log=log, place=SimpleNamespace(folder=tmp_path), **stages)
        scores = [trial.observation.metrics for trial in study.history().finished if trial.observation]
        return why_no_model(cast(Any, opened)), {name: [one[name] for one in scores] for name in ("accuracy", "params")}

    return found


def test_the_nearest_miss_is_told_on_the_side_of_each_limit(why: Any) -> None:
    reason, values = why("params<=1", "accuracy>=2")
    assert len(set(values["params"])) > 1
    assert f"6 of 6 designs miss it, the nearest has {min(values['params']):.4g}" in reason.advice[0]
    assert f"6 of 6 designs miss it, the nearest has {max(values['accuracy']):.4g}" in reason.advice[1]


def test_only_limits_that_a_design_breaks_are_to_be_loosened(why: Any) -> None:
    reason, values = why("params<=1", "accuracy<=2", f"params<={min(values_of(why)):.0f}")
    assert [line.split(":")[0] for line in reason.advice if line.startswith("loosen")] == [
        "loosen params<=1.0",
        f"loosen params<={float(min(values['params']))}",
    ]


def values_of(why: Any) -> list[float]:
    return cast(list[float], why()[1]["params"])


def test_the_end_is_that_of_the_last_run(opened: Opened) -> None:
    opened.log.append("started", "me", {"begins": True, "stop": {"trials": 9, "seconds": 2.5}})
    stop = study_json(opened.again())["config"]["stop"]
    assert (stop["trials"], stop["seconds"], stop["failures"]) == (9, 2.5, opened.search.stop.failures)
