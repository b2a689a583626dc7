"""Searches by a recipe: what it sets, what the command line sets instead, and going on after a kill."""

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Run
from tests.cli.studies import digests, facts, scores, started, wait_for
from tests.cli.training import QUICK, table

from formwright.pipeline.run import PipelineRun
from formwright.study.study import searched

Configure = Callable[..., dict[str, Any]]
LEVELS = {"searcher": "boshnas", "options": {"acquire": "gobi-nearest"}, "patience": 5, "tolerance": 1e-4}


@pytest.fixture
def configured(run: Run, tmp_path: Path, prepared: list[PipelineRun]) -> Configure:
    """Give a function that begins a search by a recipe, and returns all its options, without any work."""

    def call(*options: object) -> dict[str, Any]:
        done = run("search", "--recipe", "flexibert", *options, *own_task(tmp_path), "--out", tmp_path / "study")
        assert done.code == 0, done.err
        return searched(prepared[-1].pipeline.to_json(whole=True))

    return call


def own_task(folder: Path) -> tuple[object, ...]:
    return ("--task", table(folder), "--text", "words", "--label", "b")


def test_a_recipe_sets_all_that_is_not_said(configured: Configure) -> None:
    config = configured()
    assert (config["space"], config["recipe"]) == ("flexibert-nano-s1star", "flexibert")
    assert config["searcher"] == {"name": "coarse-to-fine", **LEVELS}
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
        *("--option", "patience=3", "--option", "parents=2"),
        *(word for setting in settings for word in ("--set", setting)),
    )
    assert config["space"] == "flexibert-s1star"
    assert config["searcher"] == {"name": "coarse-to-fine", **LEVELS, "patience": 3, "parents": 2}
    assert config["evaluator"] == {"name": "pretrained", **evaluator}
    assert (config["stop"]["trials"], config["training"]["steps"], config["steps"]) == (7, 40, 120)
    assert config["objectives"] == ["accuracy:max", "params:min"]


def test_a_setting_of_the_searcher_of_each_level_leaves_the_others_as_they_are(configured: Configure) -> None:
    options = configured("--set", "searcher.options.coordinates=one-hot")["searcher"]
    assert options["options"] == {"acquire": "gobi-nearest", "coordinates": "one-hot"}


def test_another_searcher_has_its_own_options(configured: Configure) -> None:
    config = configured("--searcher", "regularized-evolution", "--option", "population=4", "--evaluator", "full")
    assert config["searcher"] == {"name": "regularized-evolution", "population": 4}
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
        (["--recipe", "autobert-zero", "--final-weights", "best"], "'best'"),
        (["flexibert-nano", "--evaluator", "bi-branch"], "layer 0 is of the kind"),
        (["flexibert-nano", "--evaluator", "pretrained", "--set", "evaluator.text=books"], "'books'"),
        (["--recipe", "flexibert", "--evaluator", "full", "--set", "evaluator.text=pydoc"], "evaluator.text"),
        (["--recipe", "flexibert", "--set", "evaluator.proxies=[synflow]"], "evaluator.proxies"),
        (["--recipe", "flexibert", "--option", "levels=2"], "levels is 2"),
        (["--recipe", "flexibert", "--option", "tolerance=little"], "tolerance is 'little'"),
        (["--recipe", "flexibert", "--option", "searcher=5"], "searcher is 5"),
        (["--recipe", "flexibert", "--option", "coordinates=one-hot"], 'options={"coordinates": VALUE}'),
        (["--recipe", "flexibert", "--option", 'levels=[{}, {"layer": 2}]'], "Nearest: 'layers'"),
    ],
)
def test_what_does_not_go_together_is_refused(options: list[str], told: str, run: Run, tmp_path: Path) -> None:
    done = run("search", *options, *own_task(tmp_path), "--out", tmp_path / "study")
    assert (done.code, done.out) == (2, "")
    assert told in done.err
    assert not (tmp_path / "study").exists()


@pytest.mark.parametrize("task", ["digits", "pydoc/causal"])
def test_a_task_that_the_recipe_cannot_do_is_refused(task: str, run: Run, tmp_path: Path) -> None:
    done = run("search", "--recipe", "flexibert", "--task", task, "--out", tmp_path / "study")
    assert (done.code, done.out) == (2, "")
    assert task in done.err
    assert not (tmp_path / "study").exists()


def recipe_line(folder: Path) -> list[str]:
    """Give the arguments of a quick search by the recipe that comes to its last level, and to a prediction there."""
    length = ("--trials", 4, "--option", "neighbours=0", "--steps", 3, "--set", "evaluator.steps=2", "--final-steps", 3)
    length = (*length, "--workers", 1, "--no-baseline")
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
