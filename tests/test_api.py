"""The front door: studies of plain functions, runs, and what they came to."""

import math
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

import pytest
from tests.test_imports import loaded_by

import formwright as fw
from formwright.core.errors import IllegalDesign, IllegalInput, MissingExtra, UnknownName, Unsuccessful
from formwright.core.options import Stage
from formwright.core.records import Budget
from formwright.pipeline.delivered import Delivered
from formwright.pipeline.pipeline import Pipeline
from formwright.pipeline.run import RunOptions
from formwright.result import FoundModel
from formwright.search import searcher
from formwright.search.baselines import RandomSearch

SPACE = "flexibert-nano"
GOAL = ["accuracy:max"]
PROGRAM = """
import sys, time
import formwright as fw

def evaluate(card, budget):
    assert "torch" not in sys.modules
    time.sleep(0.15)
    return {"accuracy": 1 / len(card.encoder.layers) + sum(one.feed_forward[0] for one in card.encoder.layers) / 1e4}

if __name__ == "__main__":
    study = fw.Study(
        "flexibert-nano", evaluate, ["accuracy:max"], sys.argv[1], searcher="regularized-evolution", seed=3
    )
    result = study.run(trials=14)
    print(*(trial.request.card.digest for trial in result.trials))
"""


def shortest(card: Any, budget: Budget) -> float:
    return 1 / len(card.encoder.layers)


def unlucky(card: Any, budget: Budget) -> float:
    raise ValueError("out of luck")


def plain_space() -> fw.Space:
    root = fw.Record.of(layers=fw.Choice(tuple(range(1, 10))), rate=fw.Choice((0.01, 0.1, 1.0)))
    return fw.Space("plain", root, lambda design: {"layers": design.layers, "rate": design.rate})


def faulty(card: Any, budget: Budget) -> Any:
    """Fail in every way that a function can, by the number of layers."""
    number = card.data["layers"]
    if number == 1:
        raise ValueError("out of luck")
    wrong = {2: None, 3: math.nan, 4: "0.5", 5: {"loss": 1.0}, 6: {"accuracy": None}}
    return wrong.get(number, {"accuracy": card.data["rate"], "depth": number})


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> fw.Result:
    out = tmp_path_factory.mktemp("study") / "mine"
    return fw.Study(
        SPACE, shortest, ["accuracy:max", "params:min"], out, searcher="random", limits=["params<=4e5"]
    ).run(trials=8)


def test_a_number_is_the_first_goal_and_costs_are_counted(result: fw.Result) -> None:
    best = result.best_trial
    assert best is not None
    assert best.observation is not None
    assert {"accuracy", "params"} <= best.observation.metrics.keys()
    assert all(trial.observation.metrics["params"] <= 4e5 for trial in result.front())
    assert len(result.trials) == 8
    assert best in result.front()


def test_trials_become_tables(result: fw.Result) -> None:
    rows = result.trials.rows()
    assert [row["number"] for row in rows] == list(range(8))
    assert result.trials.to_csv().count("\n") == 9
    pandas = import_module("pandas")
    table = result.trials.to_pandas()
    assert isinstance(table, pandas.DataFrame)
    assert list(table["accuracy"]) == [row["accuracy"] for row in rows]


def test_a_notebook_shows_the_best_design_and_the_front(result: fw.Result) -> None:
    shown = result._repr_html_()
    assert "<svg" in shown
    assert shown.count("<tr>") == len(result.front()) + 1
    assert str(result.out) in repr(result)


def test_the_page_and_the_command_line_show_the_study(result: fw.Result, tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from formwright.cli.app import app

    assert result.page.is_file()
    assert result.report(tmp_path / "page.html").read_text(encoding="utf-8").startswith("<!")
    done = CliRunner().invoke(app, ["show", str(result.out)])
    assert done.exit_code == 0
    assert SPACE in done.output
    optuna = import_module("optuna")
    target = f"sqlite:///{tmp_path / 'optuna.db'}"
    assert result.to_optuna(target) == 8
    assert len(optuna.load_study(study_name=None, storage=target).trials) == 8


def test_a_study_of_a_function_is_resumed_by_its_program(result: fw.Result) -> None:
    with pytest.raises(IllegalInput, match=r"test_api.*shortest"):
        fw.resume(result.out, trials=20)


@pytest.mark.parametrize(("failures", "trials"), [(0, 1), (2, 3)])
def test_a_study_ends_after_more_failures_than_it_bears(failures: int, trials: int, tmp_path: Path) -> None:
    study = fw.Study(SPACE, unlucky, GOAL, tmp_path / "mine", searcher="random")
    with pytest.raises(Unsuccessful, match="out of luck"):
        study.run(trials=9, failures=failures)
    assert [trial.state for trial in study.result().trials] == ["failed"] * trials


def test_calling_again_extends_and_another_study_is_refused(tmp_path: Path) -> None:
    study = fw.Study(SPACE, shortest, GOAL, tmp_path / "mine", searcher="random")
    first = [trial.request.card.digest for trial in study.run(trials=3).trials]
    again = study.run(trials=5, workers=2)
    assert [trial.request.card.digest for trial in again.trials][:3] == first
    assert len(again.trials) == len(study.result().trials) == 5
    with pytest.raises(IllegalInput, match=r"seed"):
        fw.Study(SPACE, shortest, GOAL, tmp_path / "mine", searcher="random", seed=1).run(trials=5)


class OwnSearcher(RandomSearch):
    """A searcher of the user's own class."""


def test_a_searcher_may_be_a_class_of_the_users_own(tmp_path: Path) -> None:
    found = fw.Study(SPACE, shortest, GOAL, tmp_path / "mine", searcher=OwnSearcher).run(trials=3)
    assert len(found.trials) == 3
    assert "OwnSearcher" in (tmp_path / "mine" / "run.json").read_text()
    with pytest.raises(IllegalInput, match="by"):
        fw.Study(SPACE, shortest, GOAL, tmp_path / "mine", searcher=searcher(OwnSearcher, by="gene")).run(trials=3)


def test_patience_ends_a_study_early(tmp_path: Path) -> None:
    study = fw.Study(SPACE, lambda card, budget: 0.5, GOAL, tmp_path / "mine", searcher="random")
    assert len(study.run(trials=30, patience=4).trials) == 5


def test_faults_of_the_function_fail_their_trials(tmp_path: Path) -> None:
    study = fw.Study(plain_space(), faulty, ["accuracy:max", "depth:min"], tmp_path / "plain", searcher="random")
    found = study.run(trials=27, workers=2)
    reasons = {trial.request.card.data["layers"]: trial.reason for trial in found.trials}
    assert len(found.trials) == 27
    assert {number for number, reason in reasons.items() if reason} == {1, 2, 3, 4, 5, 6}
    assert "ValueError: out of luck" in reasons[1]
    assert all(word in reasons[5] for word in ("loss", "accuracy"))
    assert "None" in reasons[2]
    assert "nan" in reasons[3]
    assert {trial.request.card.data["layers"] for trial in found.front()} == {7}
    assert found.page.is_file()
    assert "trial" in found._repr_html_()


def test_a_study_in_which_everything_fails_says_why(tmp_path: Path) -> None:
    with pytest.raises(Unsuccessful, match="no such luck"):
        fw.Study(SPACE, _fails, GOAL, tmp_path / "mine", searcher="random").run(trials=3)


def _fails(card: Any, budget: Budget) -> float:
    raise RuntimeError("no such luck")


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"objectives": []}, "accuracy:max"),
        ({"objectives": ["accuracy"]}, "accuracy"),
        ({"evaluate": 3}, "int"),
        ({"limits": ["params~3"]}, "params~3"),
    ],
)
def test_what_makes_no_study_is_refused(changes: dict[str, Any], told: str, tmp_path: Path) -> None:
    given = {"space": SPACE, "evaluate": shortest, "objectives": GOAL, "out": tmp_path / "mine"} | changes
    with pytest.raises(IllegalInput, match=told):
        fw.Study(**given).run(trials=1)
    assert not (tmp_path / "mine").exists()


def test_names_that_do_not_exist_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="flexibert-nano"):
        fw.Study("flexibert-nanoo", shortest, GOAL, tmp_path / "mine").run(trials=1)
    with pytest.raises(UnknownName, match="random"):
        fw.Study(SPACE, shortest, GOAL, tmp_path / "mine", searcher="randm").run(trials=1)
    with pytest.raises(IllegalInput, match=r"worker\b.*workers"):
        fw.Study(SPACE, shortest, GOAL, tmp_path / "mine").run(trials=1, worker=2)
    with pytest.raises(IllegalInput, match="params"):
        fw.Study(plain_space(), faulty, ["accuracy:max", "params:min"], tmp_path / "mine").run(trials=1)
    assert not (tmp_path / "mine").exists()


def test_workers_of_a_plain_function_need_no_torch(tmp_path: Path) -> None:
    program = PROGRAM.replace("14", "2").replace("sys.argv[1]", repr(str(tmp_path / "mine")))
    assert "torch" not in loaded_by(program)


@pytest.mark.slow
def test_a_program_that_is_killed_goes_on_exactly(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(PROGRAM, encoding="utf-8")
    calm = _started(tmp_path, "calm")
    killed = _started(tmp_path, "killed")
    database = tmp_path / "killed" / "study.db"
    while not database.is_file() and killed.poll() is None:
        time.sleep(0.05)
    time.sleep(2.5)
    os.killpg(killed.pid, signal.SIGKILL)
    killed.communicate()
    expected, found = calm.communicate()[0], _started(tmp_path, "killed").communicate()[0]
    assert len(found.split()) == 14
    assert found == expected


def _started(folder: Path, out: str) -> "subprocess.Popen[str]":
    command = [sys.executable, str(folder / "mine.py"), str(folder / out)]
    environment = {**os.environ, "PYTHONPATH": str(Path(fw.__file__).parents[1])}
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment, start_new_session=True)


@pytest.mark.ray
@pytest.mark.timeout(180)
def test_a_function_is_evaluated_on_ray(tmp_path: Path) -> None:
    import_module("ray")
    study = fw.Study(SPACE, shortest, GOAL, tmp_path / "mine", searcher="random")
    assert len(study.run(trials=4, workers=2, ray="").trials) == 4


# --- pipelines -------------------------------------------------------------------------------------------------------


def test_a_file_is_run_with_settings(tmp_path: Path) -> None:
    file = tmp_path / "run.yaml"
    file.write_text(
        "stages: {search: {stage: search, space: flexibert-nano, evaluator: {name: proxy, proxies: [params]}, "
        "searcher: random}}"
    )
    found = fw.run(file, tmp_path / "out", settings={"search.stop.trials": 3, "seed": 2}, workers=1)
    assert len(found.trials) == 3
    assert len(fw.resume(tmp_path / "out", trials=4).trials) == 4
    with pytest.raises(IllegalInput, match="delivered no model"):
        _ = found.best


def test_faults_of_a_run_are_reported(tmp_path: Path) -> None:
    file = tmp_path / "run.yaml"
    file.write_text("stages: {search: {stage: search, space: flexibert-nano, serd: 3}}\n")
    with pytest.raises(IllegalDesign, match=r"run\.yaml") as error:
        fw.run(file, tmp_path / "out")
    assert "seed" in str(error.value)
    with pytest.raises(IllegalInput, match=r"fw\.compress"):
        fw.search(task="digits", recipe="eftnas")
    with pytest.raises(IllegalInput, match=r"fw\.search"):
        fw.compress(task="mini-glue/sst2", recipe="spos")
    with pytest.raises(IllegalInput, match="space"):
        fw.search(task="digits")
    with pytest.raises(IllegalInput, match="task="):
        fw.search(SPACE)


def test_a_missing_extra_is_named(result: fw.Result, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtra, match=r"formwright\[pandas\]"):
        result.trials.to_pandas()


def test_options_of_a_run_have_defaults() -> None:
    assert RunOptions().changed(workers=None) == RunOptions()
    assert RunOptions().changed(workers=3).workers == 3


def test_the_models_of_a_stage_of_another_package_are_models_of_the_result(tmp_path: Path) -> None:
    @dataclass(frozen=True)
    class Gives(Stage):
        """Deliver a model that was there."""

        NAME: ClassVar[str] = "gives"

        def make(self, run: Any) -> None:
            run.folder.mkdir(parents=True)

        def models(self, run: Any) -> list[Delivered]:
            return [Delivered("mine", "best", "", str(run.folder), 1, 1, {"accuracy": 0.5}, None, None)]

    result = fw.run(Pipeline(Gives()), tmp_path / "out")
    assert [one.name for one in result.models] == ["mine"]
    assert result.best.scores == {"accuracy": 0.5}


def test_the_best_model_is_that_of_the_best_trial(result: fw.Result) -> None:
    def model(name: str, trial: int | None) -> FoundModel:
        return FoundModel(Delivered(name, "front", "", "", 1, 1, {"accuracy": 0.5}, None, trial))

    best = result.best_trial
    assert best is not None
    later = [one.number for one in result.trials if one.number != best.number]
    models = [model("nobody's", None), *(model("other", number) for number in later), model("best", best.number)]
    found = fw.Result(result.run)
    found.__dict__["models"] = models  # as if they were delivered
    assert found.best.name == "best"
    found.__dict__["models"] = models[::-1]
    assert found.best.name == "best"


def test_a_notebook_is_shown_text_and_no_markup(tmp_path: Path) -> None:
    def score(card: Any, budget: Budget) -> dict[str, float]:
        return {"accuracy": card.data["rate"], "<b>depth</b>": card.data["layers"]}

    shown = fw.Study(plain_space(), score, GOAL, tmp_path / "out", searcher="random").run(trials=2)._repr_html_()
    assert "<b>" not in shown
    assert shown.count("&lt;b&gt;depth") >= 2  # of the best trial, and of the front


@pytest.mark.parametrize("wrong", [None, {"stages": {}}])
def test_what_is_no_pipeline_is_refused(tmp_path: Path, wrong: Any) -> None:
    with pytest.raises(IllegalInput, match="Pipeline"):
        fw.run(wrong, tmp_path / "run")
    assert not list(tmp_path.iterdir())
