"""Searches by a recipe: what it sets, what the command line sets instead, and going on after a kill."""

import json
import os
import signal
from collections import defaultdict
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Run
from tests.cli.studies import digests, facts, scores, started, wait_for
from tests.cli.training import QUICK, table
from tests.tasks.test_corpora import pairs

from formwright.arch.graph import has_formulas
from formwright.nn.hf.imported import load_folder
from formwright.nn.task_model import TaskModel
from formwright.pipeline.evaluators import TrainInStages
from formwright.pipeline.run import PipelineRun
from formwright.pipeline.study_place import find
from formwright.study.study import searched

Configure = Callable[..., dict[str, Any]]
LEVELS = {"name": "coarse-to-fine", "patience": 5, "tolerance": 1e-4, "levels": None, "parents": 5}


@pytest.fixture
def configured(run: Run, tmp_path: Path, prepared: list[PipelineRun]) -> Configure:
    """Give a function that begins a search by a recipe, and returns all its options, without any work."""

    def call(*options: object) -> dict[str, Any]:
        run("search", "--recipe", "flexibert", *options, *own_task(tmp_path), "--out", tmp_path / "study").printed()
        return searched(prepared[-1].pipeline.to_json(whole=True))

    return call


def own_task(folder: Path) -> tuple[object, ...]:
    return ("--task", table(folder), "--text", "words", "--label", "b")


def test_a_recipe_sets_all_that_is_not_said(configured: Configure) -> None:
    config = configured()
    assert (config["space"], config["recipe"]) == ("flexibert-nano-s1star", "flexibert")
    assert LEVELS.items() <= config["searcher"].items()
    assert {"name": "boshnas", "acquire": "gobi-nearest"}.items() <= config["searcher"]["searcher"].items()
    assert config["evaluator"] == {"name": "pretrained", "steps": 300, "text": "task", "least_overlap": 0.8}
    assert config["stop"]["trials"] == 60
    assert (config["training"]["steps"], config["steps"]) == (100, 300)  # the least, for 80 rows


def test_default_steps_scale_with_the_rows(configured: Configure) -> None:
    config = configured("--batch", 6)
    assert (config["training"]["steps"], config["steps"]) == (134, 402)  # 10 and 30 epochs of 80 rows
    config = configured("--batch", 6, "--steps", 300, "--final-steps", 400)
    assert (config["training"]["steps"], config["steps"]) == (300, 400)


def test_what_is_said_comes_before_the_recipe(configured: Configure) -> None:
    evaluator = {"steps": 9, "text": "pydoc", "least_overlap": 0.5}
    settings = [f"evaluator.{name.replace('_', '-')}={value}" for name, value in evaluator.items()]
    config = configured(
        *("flexibert-s1star", "--trials", 7, "--steps", 40, "--dropout", 0, "--minimise", "params"),
        *("--set", "searcher.patience=3", "--set", "searcher.parents=2"),
        *(word for setting in settings for word in ("--set", setting)),
    )
    assert config["space"] == "flexibert-s1star"
    assert (LEVELS | {"patience": 3, "parents": 2}).items() <= config["searcher"].items()
    assert config["evaluator"] == {"name": "pretrained", **evaluator}
    assert (config["stop"]["trials"], config["training"]["steps"], config["steps"]) == (7, 40, 120)
    assert config["objectives"] == ["accuracy:max", "params:min"]


def test_a_setting_of_the_searcher_of_each_level_leaves_the_others_as_they_are(configured: Configure) -> None:
    inner = configured("--set", "searcher.searcher.coordinates=one-hot")["searcher"]["searcher"]
    assert (inner["acquire"], inner["coordinates"]) == ("gobi-nearest", "one-hot")


def test_another_searcher_has_its_own_options(configured: Configure) -> None:
    config = configured("--searcher", "regularized-evolution", "--set", "searcher.population=4", "--evaluator", "full")
    assert config["searcher"] == {"name": "regularized-evolution", "population": 4, "tournament": None}
    assert config["evaluator"] == {"name": "full"}


def test_designs_that_share_weights_can_be_told_how(configured: Configure) -> None:
    recipe = ("--recipe", "autobert-zero")
    config = configured(*recipe, "--set", "evaluator.steps=9", "--set", "evaluator.from-scratch=true")
    assert (config["space"], config["searcher"]["name"]) == ("autobert-zero-nano", "op-nas")
    assert config["evaluator"] == {"name": "bi-branch", "steps": 9, "text": "task", "from_scratch": True}
    plain = configured(*recipe)
    assert (plain["evaluator"]["from_scratch"], plain["weights"]) == (False, "fresh")
    assert configured(*recipe, "--final-weights", "shared")["weights"] == "shared"


def test_another_end_of_the_search_replaces_the_number_of_trials(configured: Configure) -> None:
    stop = configured("--seconds", 60)["stop"]
    assert (stop["trials"], stop["seconds"]) == (None, 60.0)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--recipe", "flexbert"], "Nearest: 'flexibert'"),
        (["--recipe", "nas-bert"], "formwright compress --recipe nas-bert"),
        ([], "formwright list recipes"),
        (["flexibert-nano", "--set", "evaluator.steps=300"], "evaluator"),
        (["--recipe", "autobert-zero", "--set", "evaluator.least-overlap=0.5"], "least_overlap"),
        (["flexibert-nano", "--final-weights", "shared"], "shared"),
        (["--recipe", "flexibert", "--final-weights", "shared"], "pretrained"),
        (
            ["--recipe", "autobert-zero", "--final-weights", "shared", "--set", "evaluator.from-scratch=true"],
            "bi-branch",
        ),
        (["--recipe", "autobert-zero", "--final-weights", "best"], "best"),
        (["flexibert-nano", "--evaluator", "bi-branch"], "layer 0 is of the kind"),
        (["flexibert-nano", "--evaluator", "pretrained", "--set", "evaluator.text=books"], "books"),
        (["--recipe", "flexibert", "--evaluator", "full", "--set", "evaluator.text=pydoc"], "evaluator.text"),
        (["--recipe", "flexibert", "--set", "evaluator.proxies=[synflow]"], "evaluator.proxies"),
        (["--recipe", "flexibert", "--set", "searcher.levels=2"], "searcher.levels: must be a list, not 2"),
        (["--recipe", "flexibert", "--set", "searcher.tolerance=little"], "searcher.tolerance: must be a number"),
        (["--recipe", "flexibert", "--set", "searcher.searcher=5"], "searcher.searcher: must be a name"),
        (["--recipe", "flexibert", "--set", "searcher.coordinates=one-hot"], "searcher.coordinates: "),
        (["--recipe", "flexibert", "--set", "searcher.searcher.cordinates=one-hot"], "'coordinates'"),
        (["--recipe", "flexibert", "--set", 'searcher.levels=[{}, {"layer": 2}]'], "nearest: 'layers'"),
    ],
)
def test_what_does_not_go_together_is_refused(options: list[str], told: str, run: Run, tmp_path: Path) -> None:
    run("search", *options, *own_task(tmp_path), "--out", tmp_path / "study").refused(told)
    assert not (tmp_path / "study").exists()


@pytest.mark.parametrize(
    ("design", "task", "fact"),
    [
        (("--recipe", "flexibert"), "digits", "digits"),
        (("--recipe", "flexibert"), "pydoc/causal", "pydoc/causal"),
        (("evolved-transformer-nano",), "mini-glue/rte", "needs a design of family"),
        (("flexibert-nano",), "translation", "needs a design of family"),
    ],
)
def test_a_task_of_another_family_is_refused(design: Any, task: str, fact: str, run: Run, tmp_path: Path) -> None:
    run("search", *design, "--task", task, "--out", tmp_path / "study").refused(fact)
    assert not (tmp_path / "study").exists()


def recipe_line(folder: Path) -> list[str]:
    """Give the arguments of a quick search by the recipe that comes to its last level, and to a prediction there."""
    settings = ("--set", "searcher.neighbours=0", "--set", "evaluator.steps=2")
    length = ("--trials", 4, *settings, "--steps", 3, "--final-steps", 3, "--workers", 1, "--no-baseline")
    line = ("search", "--recipe", "flexibert", *own_task(folder), *QUICK, *length, "--out", folder / "study")
    return [str(part) for part in line]


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.long
def test_a_search_by_a_recipe_that_was_killed_goes_on_as_if_nothing_had_happened(tmp_path: Path) -> None:
    (tmp_path / "whole").mkdir()
    whole = facts(*recipe_line(tmp_path / "whole"))
    assert [trial["state"] for trial in whole["trials"]] == ["finished"] * 4
    assert whole["spent"]["steps"] in range(4 * 3, 4 * (3 + 2) + 1)  # a relative may have spared pretraining
    with started(recipe_line(tmp_path)) as process:
        wait_for(process, tmp_path / "study", lambda event: event.kind == "told" and event.number == 1)
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    study = facts("resume", tmp_path / "study", "--workers", 1, "--no-baseline")
    assert digests(study) == digests(whole)
    assert scores(study) == scores(whole)
    assert study["models"][0]["test"] == whole["models"][0]["test"]


SPACE = "evolved-transformer-nano"
SMALL = ("--steps", 9, "--batch", 4, "--length", 16, "--final-steps", 2)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.usefixtures("one_process")
def test_hurdles_train_translators_slice_by_slice_and_deliver_one_that_writes(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "study"
    settings = [("--set", f"searcher.{option}") for option in ("population=2", "batch=2", "tournament=1")]
    run(
        *("search", SPACE, "--task", "multi30k", "--data", pairs(tmp_path / "multi30k", 8), "--searcher", "hurdles"),
        *(*SMALL, "--trials", 12, "--out", out, "--json", *chain(*settings)),
    ).printed()
    with find(str(out)).open() as opened:
        assert opened.search.evaluator == TrainInStages()
        trials = opened.history().trials
    spent, budgets = defaultdict(int), defaultdict(int)
    for trial in trials:
        assert trial.observation is not None, trial.reason
        assert set(trial.observation.metrics) >= {"perplexity", "params"}
        assert "bleu" not in trial.observation.metrics
        assert trial.request.budget.steps in (1, 3, 9)
        spent[trial.request.card.digest] += trial.observation.spent.steps
        budgets[trial.request.card.digest] = max(budgets[trial.request.card.digest], trial.request.budget.steps)
    assert spent == budgets  # nothing was trained twice
    assert max(budgets.values()) > 1
    models = {model.name: model for model in (out / "models").iterdir()}
    assert "baseline" in models
    (best,) = [model for name, model in models.items() if name != "baseline"]
    assert json.loads((best / "generation_config.json").read_text())["decoder_start_token_id"] == 2
    assert "multi30k test bleu" in (best / "README.md").read_text(encoding="utf-8")


LIMIT = 285_000  # an attention of four inputs in every layer has 292,800 parameters
TRIALS = 5


def line(folder: Path) -> list[str]:
    """Give the arguments of a quick search by the recipe, with two workers."""
    length = ("--trials", TRIALS, "--steps", 3, "--set", "evaluator.steps=2", "--final-steps", 3)
    rest = ("--workers", 2, "--no-baseline", "--limit", f"params<={LIMIT}", "--out", folder / "study")
    return [str(part) for part in ("search", "--recipe", "autobert-zero", *own_task(folder), *QUICK, *length, *rest)]


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_search_with_workers_and_a_limit_that_was_killed_goes_on_and_delivers(tmp_path: Path) -> None:
    with started(line(tmp_path)) as process:
        wait_for(process, tmp_path / "study", lambda event: event.kind == "told")
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    study = facts("resume", tmp_path / "study", "--workers", 2, "--no-baseline")
    assert [trial["state"] for trial in study["trials"]] == ["finished"] * TRIALS
    assert len(set(digests(study))) == TRIALS
    (delivered,) = study["models"]
    model = load_folder(delivered["path"])
    assert isinstance(model, TaskModel)
    assert 0 < delivered["params"] <= LIMIT
    assert has_formulas(model.transformer.card)
    exported = facts("export", delivered["path"], "--to", "onnx", "--out", tmp_path / "onnx")
    assert 0 < exported["largest_difference"] < 1e-3
    page = (tmp_path / "study" / "report.html").read_text(encoding="utf-8")
    assert 'id="formulas"' in page
    assert 'id="operations"' in page


def test_a_limit_that_no_design_keeps_is_refused_before_shared_weights_are_trained(run: Run, tmp_path: Path) -> None:
    options = ("--task", "digits", "--limit", "params<=10", "--out", tmp_path / "out")
    run("search", "--recipe", "autoformer", *options).refused("params<=10", "nearest")
    assert not (tmp_path / "out").exists()
