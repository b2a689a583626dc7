"""A resumed study keeps its own settings and its own data, and says so where it cannot."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Run
from tests.cli.studies import STEPS, digests, scores, search_line
from tests.cli.training import card_file, on_table, table
from tests.pipeline.cases import films_study, work

from formwright.pipeline import run_events
from formwright.pipeline.run import PipelineRun, RunOptions
from formwright.pipeline.run_events import begin_run
from formwright.pipeline.study_facts import study_json
from formwright.pipeline.study_place import Place, find
from formwright.study.processes import STOPPED

pytestmark = pytest.mark.usefixtures("one_process")
PROXY = ("--evaluator", "proxy", "--set", "evaluator.proxies=[params]", "--no-baseline")


def events(folder: Path) -> list[Any]:
    with find(str(folder)).open() as opened:
        return opened.log.read()


def with_more_rows(path: Path, number: int) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join([*lines, *(f"9 9 {row} b,yes" for row in range(number))]) + "\n", encoding="utf-8")


def check_told(message: str, path: Path) -> None:
    """See that a message names the file, and of each split how many rows it had and has."""
    assert str(path) in message
    names, old, new = zip(*re.findall(r"(\w+) rows \((\d+) before, (\d+) now", message), strict=True)
    assert sorted(names) == ["test", "training", "validation"]
    assert (sum(map(int, old)), sum(map(int, new))) == (100, 200)


@pytest.mark.slow
def test_a_table_that_was_replaced_is_refused_with_what_changed(run: Run, tmp_path: Path) -> None:
    run(*search_line(tmp_path, *PROXY, trials=2)).printed()
    before, rows = events(tmp_path / "study"), (tmp_path / "mine.csv").read_text(encoding="utf-8")
    with_more_rows(tmp_path / "mine.csv", 100)
    for command in (("resume", tmp_path / "study", "--trials", 4), ("worker", tmp_path / "study")):
        check_told(run(*command).refused().err, tmp_path / "mine.csv")
    assert events(tmp_path / "study") == before  # not even a beginning is noted
    (tmp_path / "mine.csv").write_text(rows, encoding="utf-8")
    assert run("resume", tmp_path / "study", "--trials", 3).code == 0
    assert sum(event.kind == "told" for event in events(tmp_path / "study")) == 3


@pytest.mark.slow
def test_as_many_rows_with_other_content_are_refused(run: Run, tmp_path: Path) -> None:
    assert run(*search_line(tmp_path, *PROXY, trials=1)).code == 0
    mine = tmp_path / "mine.csv"
    mine.write_text(mine.read_text(encoding="utf-8").replace(" a ", " zebra "), encoding="utf-8")
    refused = run("resume", tmp_path / "study", "--trials", 2).refused()
    assert re.search(r"training rows \(\d+ before and now", refused.err)


def conducted_with(place: Place, options: RunOptions) -> None:
    with place.open() as opened:
        begin_run(opened.log, options, None, {})


def test_a_study_is_resumed_as_it_was_begun(run: Run, prepared: list[PipelineRun], tmp_path: Path) -> None:
    def resumed(*arguments: object) -> RunOptions:
        assert run("resume", place.folder, *arguments).code == 0
        return prepared[-1].options

    place = films_study(tmp_path)
    assert resumed() == RunOptions()
    began = RunOptions(1, "auto", 2.0, 0.5)
    conducted_with(place, began)
    assert resumed() == began
    explicit = resumed("--workers", 3, "--ray", "none")
    assert explicit == RunOptions(3, None, 2.0, 0.5)
    conducted_with(place, explicit)  # as a run does
    assert resumed() == explicit


@pytest.mark.slow
def test_a_baseline_that_is_left_out_is_left_out_of_a_resumed_run_too(run: Run, tmp_path: Path) -> None:
    folder = films_study(tmp_path, trials=1, steps=2, final_steps=2).folder
    found = [run("resume", folder, *options, "--json").data["models"] for options in WISHES]
    names = [{model["role"] for model in models} for models in found]
    assert names == [{"best"}, {"best"}, {"best", "baseline"}]


WISHES = (["--no-baseline"], [], ["--baseline"])


def test_fewer_trials_than_are_done_are_refused(run: Run, tmp_path: Path) -> None:
    place = films_study(tmp_path, trials=3, steps=2)
    work(place)
    for option, number, done in (("--trials", 2, "3 trials"), ("--spend-steps", 5, "6 steps")):
        run("resume", place.folder, option, number).refused(done)


@pytest.mark.slow
def test_a_resumed_study_has_an_uninterrupted_history(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With one worker, and without saying so again; the interruption comes within the second trial."""
    assert run(*search_line(tmp_path, "--workers", 1, "--no-baseline", out="whole")).code == 0
    used: list[int] = []
    working = run_events.run_workers

    def interrupted(work: Any, number: int, look: Callable[[], None]) -> bool:
        used.append(number)
        if len(used) > 1:
            return bool(working(work, number, look))
        looks = iter(range(100))
        assert work(lambda: next(looks) == STEPS + 3) == STOPPED
        return False

    monkeypatch.setattr(run_events, "run_workers", interrupted)
    assert run(*search_line(tmp_path, "--workers", 1, "--no-baseline")).code == 130
    done = run("resume", tmp_path / "study", "--json")
    assert used == [1, 1]
    with find(str(tmp_path / "whole")).open() as opened:
        whole = study_json(opened)
    assert digests(done.data) == digests(whole)
    assert scores(done.data) == scores(whole)
    assert [model["role"] for model in done.data["models"]] == ["best"]  # no baseline either


def test_train_tells_how_many_rows_there_were(run: Run, tmp_path: Path) -> None:
    mine = table(tmp_path)
    command = ("train", card_file(tmp_path), *on_table(mine), "--steps", 1, "--out", tmp_path / "out")
    assert run(*command).code == 0
    with_more_rows(mine, 100)
    check_told(run(*command).refused("--force").err, mine)
