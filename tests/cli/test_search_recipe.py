"""Searches by a recipe: what it sets, what the command line sets instead, and going on after a kill."""

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Run
from tests.cli.studies import digests, facts, scores, started, wait_for
from tests.cli.training import QUICK, table

from formwright.recipes.flexibert import FLEXIBERT

Configure = Callable[..., dict[str, Any]]


@pytest.fixture
def configured(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Configure:
    """Give a function that begins a search by a recipe, and returns its configuration, without any work."""
    found: list[Any] = []
    monkeypatch.setattr("formwright.cli.study_run.conduct", lambda place, _: found.append(place))

    def call(*options: object) -> dict[str, Any]:
        out = ("--out", tmp_path / f"study-{len(found)}")
        done = run("search", "--recipe", "flexibert", *options, *own_task(tmp_path), *out)
        assert done.code == 0, done.err
        config: dict[str, Any] = json.loads((found[-1].folder / "config.json").read_text(encoding="utf-8"))["config"]
        return config

    return call


def own_task(folder: Path) -> tuple[object, ...]:
    return ("--task", table(folder), "--text", "words", "--label", "b")


def test_a_recipe_sets_all_that_is_not_said(configured: Configure) -> None:
    config = configured()
    assert config["space"] == "flexibert-nano-s1star"
    assert config["searcher"] == {"name": "coarse-to-fine", "options": dict(FLEXIBERT.options)}
    assert config["evaluator"]["name"] == "pretrained"
    assert config["pretraining"] == {"steps": 300, "text": "task", "least_overlap": 0.8, "from_scratch": False}
    assert config["stop"]["trials"] == 60
    assert (config["training"]["steps"], config["final_steps"]) == (100, 300)  # the least, for 80 rows


def test_default_steps_scale_with_the_rows(configured: Configure) -> None:
    config = configured("--batch", 6)
    assert (config["training"]["steps"], config["final_steps"]) == (134, 402)  # 10 and 30 epochs of 80 rows
    config = configured("--batch", 6, "--steps", 300, "--final-steps", 400)
    assert (config["training"]["steps"], config["final_steps"]) == (300, 400)


def test_what_is_said_comes_before_the_recipe(configured: Configure) -> None:
    config = configured(
        *(
            "flexibert-s1star",
            "--trials",
            7,
            "--steps",
            40,
            "--dropout",
            0,
            "--pretrain-steps",
            9,
            "--minimise",
            "params",
        ),
        *("--pretrain-text", "pydoc", "--least-overlap", 0.5, "--option", "patience=3", "--option", "parents=2"),
    )
    assert config["space"] == "flexibert-s1star"
    assert config["searcher"]["options"] == {**FLEXIBERT.options, "patience": 3, "parents": 2}
    assert config["pretraining"] == {"steps": 9, "text": "pydoc", "least_overlap": 0.5, "from_scratch": False}
    assert (config["stop"]["trials"], config["training"]["steps"], config["final_steps"]) == (7, 40, 120)
    assert config["objectives"] == ["accuracy:max", "params:min"]


def test_a_setting_of_the_searcher_of_each_level_leaves_the_others_as_they_are(configured: Configure) -> None:
    options = configured("--option", 'options={"coordinates": "one-hot"}')["searcher"]["options"]
    assert options == {**FLEXIBERT.options, "options": {"acquire": "gobi-nearest", "coordinates": "one-hot"}}
    assert "options" not in configured("--option", "searcher=random")["searcher"]["options"]


def test_another_searcher_has_its_own_options(configured: Configure) -> None:
    config = configured("--searcher", "regularized-evolution", "--option", "population=4", "--evaluator", "full")
    assert config["searcher"] == {"name": "regularized-evolution", "options": {"population": 4}}
    assert config["evaluator"]["name"] == "full"


def test_designs_that_share_weights_can_be_told_how(configured: Configure) -> None:
    config = configured("--recipe", "autobert-zero", "--pretrain-steps", 9, "--from-scratch")
    assert (config["space"], config["searcher"]["name"]) == ("autobert-zero-nano", "op-nas")
    assert config["evaluator"]["name"] == "bi-branch"
    assert (config["pretraining"]["steps"], config["pretraining"]["from_scratch"]) == (9, True)
    plain = configured("--recipe", "autobert-zero")
    assert (plain["pretraining"]["from_scratch"], plain["final_weights"]) == (False, "fresh")
    assert configured("--recipe", "autobert-zero", "--final-weights", "store")["final_weights"] == "store"


def test_another_end_of_the_search_replaces_the_number_of_trials(configured: Configure) -> None:
    stop = configured("--seconds", 60)["stop"]
    assert (stop["trials"], stop["seconds"]) == (None, 60.0)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--recipe", "flexbert"], "no recipe called 'flexbert'. Nearest: 'flexibert'"),
        (["--recipe", "nas-bert"], "nas-bert compresses a pretrained model: `formwright compress --recipe nas-bert`"),
        ([], "name a space (`formwright list spaces`), or a --recipe (`formwright list recipes`)"),
        (["flexibert-nano", "--pretrain-steps", "300"], "go with --evaluator pretrained"),
        (["flexibert-nano", "--least-overlap", "0.5"], "--least-overlap goes with --evaluator pretrained"),
        (["flexibert-nano", "--from-scratch"], "--from-scratch goes with --evaluator bi-branch"),
        (["--recipe", "autobert-zero", "--least-overlap", "0.5"], "--least-overlap goes with --evaluator pretrained"),
        (["flexibert-nano", "--final-weights", "store"], "--final-weights store goes with --evaluator bi-branch"),
        (["--recipe", "flexibert", "--final-weights", "store"], "--final-weights store goes with --evaluator bi"),
        (["--recipe", "autobert-zero", "--final-weights", "store", "--from-scratch"], "and without --from-scratch"),
        (["--recipe", "autobert-zero", "--final-weights", "best"], "no final weights called 'best'"),
        (["flexibert-nano", "--evaluator", "bi-branch"], "layer 0 is of the kind"),
        (["flexibert-nano", "--evaluator", "pretrained", "--pretrain-text", "books"], "no text called 'books'"),
        (
            ["--recipe", "flexibert", "--evaluator", "full", "--pretrain-text", "pydoc"],
            "go with --evaluator pretrained",
        ),
        (["--recipe", "flexibert", "--proxy", "synflow"], "--proxy synflow goes with --evaluator proxy"),
        (["--recipe", "flexibert", "--option", "levels=2"], "levels is 2; it must be a list of objects"),
        (["--recipe", "flexibert", "--option", "tolerance=little"], "tolerance is 'little'; it must be a number"),
        (["--recipe", "flexibert", "--option", "searcher=5"], "searcher is 5; it must be the name"),
        (["--recipe", "flexibert", "--option", "coordinates=one-hot"], 'set options={"coordinates": VALUE}'),
        (["--recipe", "flexibert", "--option", 'levels=[{}, {"layer": 2}]'], "is called 'layer'. Nearest: 'layers'"),
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
    assert f"designs for the task {task}" in done.err
    assert "cannot be pretrained" in done.err


def test_recipes_are_listed(run: Run) -> None:
    entries = {entry["name"]: entry for entry in run("list", "recipes", "--json").data["recipes"]}
    assert entries.keys() == {"flexibert", "autobert-zero", "evolved-transformer", "eftnas", "nas-bert"}
    assert entries["flexibert"] == {
        "name": "flexibert",
        "job": "search",
        "paper": FLEXIBERT.paper,
        "needs": FLEXIBERT.needs,
        "takes": FLEXIBERT.takes,
        "about": FLEXIBERT.about,
    }
    assert entries["nas-bert"]["job"] == "compress"
    assert all(all(entry.values()) for entry in entries.values())  # nothing is left unsaid


def recipe_line(folder: Path) -> list[str]:
    """Give the arguments of a quick search by the recipe that comes to its last level, and to a prediction there."""
    length = (
        "--trials",
        4,
        "--option",
        "neighbours=0",
        "--steps",
        3,
        "--pretrain-steps",
        2,
        "--final-steps",
        3,
        "--workers",
        1,
        "--no-baseline",
    )
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
