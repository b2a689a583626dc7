import json
import os
import shlex
import signal
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Run, in_one_process
from tests.cli.studies import SPACE, STEPS, called, digests, facts, scores, search_line, started, wait_for
from tests.cli.training import table
from tests.pipeline.cases import search_of

from formwright import api
from formwright.compose import default_folder
from formwright.core.errors import IllegalInput
from formwright.nn.hf.save import load_folder
from formwright.pipeline.run import PipelineRun
from formwright.pipeline.search import Search
from formwright.pipeline.study_place import find


def test_options_of_the_run_reach_it(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, Any] = {}

    def stop(_: Any, out: Path, **options: Any) -> None:
        seen.update(options, out=out)
        raise IllegalInput("enough")

    monkeypatch.setattr(api, "run", stop)
    line = "--workers 3 --hours 1.5 --ray here --ray-cpus 2 --ray-gpus 0.5 --storage sqlite:///a.db --observe mlflow"
    assert run(*search_line(tmp_path), *line.split(), "--force").code == 2
    wanted = {"workers": 3, "hours": 1.5, "ray": "here", "ray_cpus": 2.0, "ray_gpus": 0.5, "force": True}
    wanted |= {"storage": "sqlite:///a.db", "observers": ["mlflow"], "out": tmp_path / "study"}
    assert {name: seen[name] for name in wanted} == wanted


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """Give the folder of a study that came to its end, and what the command said of it."""
    folder = tmp_path_factory.mktemp("searched")
    with pytest.MonkeyPatch.context() as patch:
        in_one_process(patch)
        return folder / "study", called(*search_line(folder, "--workers", 1))


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_a_search_leaves_all_that_was_promised(searched: tuple[Path, dict[str, Any]]) -> None:
    folder, study = searched
    names = {path.name for path in folder.iterdir()}
    assert names >= {"study.db", "run.json", "report.html", "models"}
    assert {path.name for path in (folder / "models").iterdir()} == {model["name"] for model in study["models"]}
    assert study["report"] == str(folder / "report.html")
    assert (folder / "report.html").read_text(encoding="utf-8").startswith("<!")
    for model in study["models"]:
        assert load_folder(model["path"]) is not None
    stored = json.loads((folder / "run.json").read_text(encoding="utf-8"))["pipeline"]["stages"]["search"]
    assert stored["objectives"] == study["config"]["objectives"]
    assert stored["training"].items() <= study["config"]["training"].items()


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_a_search_says_what_it_found(searched: tuple[Path, dict[str, Any]]) -> None:
    _, study = searched
    assert study["kind"] == "study"
    assert study["config"]["objectives"] == ["accuracy:max"]
    assert [trial["number"] for trial in study["trials"]] == [0, 1, 2]
    for trial in study["trials"]:
        assert trial["state"] == "finished"
        assert set(trial["costs"]) == {"params", "macs"}
        assert trial["seconds"] > 0
    assert len(set(digests(study))) == 3
    accuracies = [metrics["accuracy"] for metrics in scores(study)]
    assert accuracies[study["best"][0]] == max(accuracies)
    assert study["spent"]["steps"] == 3 * STEPS
    found, baseline = study["models"]
    assert (found["role"], baseline["role"]) == ("best", "baseline")
    assert found["digest"] in digests(study)
    assert baseline["params"] >= found["params"]
    assert set(found["test"]) == set(baseline["test"]) == set(found["validation"])


@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_stopped_search_resumes_exactly(number: signal.Signals, searched: Any, tmp_path: Path) -> None:
    with started(search_line(tmp_path, "--workers", 1)) as process:
        wait_for(process, tmp_path / "study", lambda event: event.kind == "told")
        os.killpg(process.pid, number)  # the launcher and its worker at once, as a terminal does
        out, err = process.communicate()
    if number == signal.SIGINT:
        assert (process.returncode, out, "Traceback" in err) == (130, "", False), err
        stopped, line = err.splitlines()[-2:]
        assert "everything is saved" in stopped
        assert shlex.split(line) == ["formwright", "resume", str(tmp_path / "study")]
    with find(str(tmp_path / "study")).open() as opened:
        before = opened.log.read()
    if number == signal.SIGKILL:  # an interrupted worker may finish the trial that it has
        assert process.returncode == -signal.SIGKILL
        assert sum(event.kind == "told" for event in before) < 3
    study = facts("resume", tmp_path / "study", "--no-baseline")
    assert (digests(study), scores(study)) == (digests(searched[1]), scores(searched[1]))
    assert study["models"][0]["test"] == searched[1]["models"][0]["test"]
    with find(str(tmp_path / "study")).open() as opened:
        assert opened.log.read()[: len(before)] == before


@pytest.mark.slow
@pytest.mark.timeout(180)
@pytest.mark.long
def test_the_training_of_the_found_designs_can_be_interrupted_too(tmp_path: Path) -> None:
    with started(search_line(tmp_path, "--no-baseline", trials=1, final=1_000_000)) as process:
        assert process.stderr is not None
        lines: list[str] = []
        while not any(line.startswith("training trial-0") for line in lines):
            lines.append(process.stderr.readline())
            assert lines[-1], process.communicate()
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, ""), err
    assert "Traceback" not in err
    assert f"formwright resume {tmp_path / 'study'}" in err
    assert "the search is finished: 1 trial\n" in lines


def refused(run: Run, folder: Path, *options: object, facts: Iterable[str]) -> None:
    """See that a search is refused with these facts, and leaves nothing behind."""
    before = sorted(folder.rglob("*"))
    run(*search_line(folder, *options)).refused(*facts)
    assert sorted(path for path in folder.rglob("*") if path.name != "mine.csv") == before


@pytest.mark.parametrize(
    "case",
    [
        (["--searcher", "regevo"], "no searcher called 'regevo'. Nearest: 'regularized-evolution'"),
        (["--set", "searcher.alpa=0.3"], "'alpha'"),
        (["--set", "searcher.initial=0"], "search.searcher.initial: "),
        (["--set", "searcher.initial=many"], "search.searcher.initial: must be a whole number"),
        (["--tolerance", "0.1"], "give patience"),
        (["--evaluator", "fulll"], "no evaluator called 'fulll'. Nearest: 'full'"),
        (["--evaluator", "proxy", "--set", "evaluator.proxies=[sinflow]"], "sinflow"),
        (["--set", "evaluator.proxies=[synflow]"], "evaluator"),
        (["--set", "serch.seed=3"], "Nearest: 'search'"),
        (["--set", "seed"], "PART.OPTION=VALUE"),
        (["--workers", "1001"], "--workers"),
        (["--limit", "params<=5"], "no design of flexibert-nano with params<=5.0 was found; the nearest has params"),
        (["--limit", "params"], "'params'"),
        (["--limit", "paramz<=5"], "Nearest: 'params'"),
        (["--limit", "params<=5X"], "'5X'"),
        (["--limit", "params<=50%"], "'params<=50%'"),
        (["--limit", "accuracy<=0.9", "--limit", "accuracy>=0.95"], "accuracy<=0.9", "accuracy>=0.95"),
        (["--limit", "params<=1e4", "--limit", "params>=2e4"], "params<=10000", "params>=20000"),
        (["--limit", "accuracy>=1.5"], "accuracy>=1.5", "from 0 to 1"),
        (["--limit", "accuracy<=-0.1"], "accuracy<=-0.1"),
        (["--limit", "latency_ms<=-1"], "latency_ms<=-1"),
        (["--limit", "acuracy>=0.5"], "acuracy", "'accuracy'"),
        (["--maximise", "acuracy"], "'acuracy'", "Nearest: 'accuracy'"),
        (["--minimise", "params", "--minimise", "params"], "'params' is named as an objective twice"),
        (["--storage", "mysql://me@there/x"], "cannot keep a study in mysql://me@there/x"),
        (["--task", "mini-glue/sst3"], "no task called 'mini-glue/sst3'"),
    ],
    ids=str,
)
def test_an_impossible_search_leaves_nothing_behind(case: tuple[Any, ...], run: Run, tmp_path: Path) -> None:
    options, *facts = case
    refused(run, tmp_path, *options, facts=facts)


def test_a_folder_that_is_taken_is_refused(run: Run, tmp_path: Path) -> None:
    (tmp_path / "study").mkdir()
    (tmp_path / "study" / "diary.txt").touch()
    refused(run, tmp_path, facts=["--out"])


@pytest.mark.parametrize(
    ("space", "told"), [("flexibert-nanno", "no space called 'flexibert-nanno'"), ("a.py:MINE", "there is no file")]
)
def test_an_unknown_space_is_refused(space: str, told: str, run: Run, tmp_path: Path) -> None:
    line = search_line(tmp_path)
    run(line[0], space, *line[2:]).refused(told)


def test_a_space_that_builds_nothing_is_refused(run: Run, tmp_path: Path) -> None:
    lines = ("from dataclasses import replace", "from formwright.testing.toy_problem import tiny")
    (tmp_path / "own.py").write_text("\n".join([*lines, "MINE = replace(tiny(), build=lambda design: 1 / 0)"]))
    line = search_line(tmp_path)
    done = run(line[0], f"{tmp_path / 'own.py'}:MINE", *line[2:]).refused()
    assert done.err.startswith("formwright: the `build` of space 'tiny' failed for the design")
    assert not (tmp_path / "study").exists()


@pytest.mark.parametrize("column", [("--text", "wordz", "--label", "b"), ("--text", "words", "--label", "wordz")])
def test_a_wrong_column_is_refused(column: tuple[str, ...], run: Run, tmp_path: Path) -> None:
    run("search", SPACE, "--task", table(tmp_path), *column, "--out", tmp_path / "study").refused("wordz")
    assert not (tmp_path / "study").exists()


@pytest.mark.parametrize(
    ("space", "task", "name"),
    [
        ("flexibert-nano", "mini-glue/sst2", "flexibert-nano-mini-glue-sst2"),
        ("flexibert-nano", "/home/me/reviews.csv", "flexibert-nano-reviews"),
        ("flexibert-nano", "../reviews.csv", "flexibert-nano-reviews"),
        ("spaces/mine.py:SPACE", "reviews.jsonl", "mine-reviews"),
    ],
)
def test_a_folder_is_named_after_space_and_task(space: str, task: str, name: str) -> None:
    assert default_folder("studies", space, task) == Path("studies") / name


@pytest.mark.parametrize(
    ("options", "goals"),
    [
        ([], ("synflow:max",)),
        (["--set", "evaluator.proxies=[params]"], ("params:max",)),
        (["--maximise", "params"], ("params:max",)),
        (["--minimise", "params"], ("synflow:max", "params:min")),
    ],
)
def test_proxies_are_raised_unless_another_goal_is_named(
    options: list[str], goals: tuple[str, ...], run: Run, tmp_path: Path, prepared: list[PipelineRun]
) -> None:
    run(*search_line(tmp_path, "--evaluator", "proxy", *options)).printed()
    assert search_of(prepared[0].pipeline).objectives == goals


def test_the_same_command_resumes_and_another_is_refused(run: Run, tmp_path: Path, one_process: None) -> None:
    line = search_line(tmp_path, "--evaluator", "proxy", "--no-baseline", trials=1)
    assert run(*line).code == 0
    with find(str(tmp_path / "study")).open() as opened:
        before = [event.kind for event in opened.log.read()]
    assert run(*line).code == 0
    with find(str(tmp_path / "study")).open() as opened:
        assert [event.kind for event in opened.log.read()][len(before) :] == ["started", "note", "stopped"]
    run(*line, "--seed", 7).refused("search.seed", "7", "--out", "resume")


def test_a_password_is_not_noted(
    run: Run, tmp_path: Path, prepared: list[PipelineRun], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["formwright", "search", "--storage", "postgresql://me:secret@host/db"])
    assert run(*search_line(tmp_path)).code == 0
    assert [begun.command for begun in prepared] == ["formwright search --storage 'postgresql://me:***@host/db'"]


def test_hours_leave_time_for_the_delivered_models(run: Run, tmp_path: Path, prepared: list[PipelineRun]) -> None:
    done = run(*search_line(tmp_path, "--hours", 0.5)).printed()
    (stage,) = prepared[-1].pipeline.of_kind(Search)
    assert stage.stop.trials == 3
    assert stage.stop.seconds is not None
    assert 60 < stage.stop.seconds < 1620  # a tenth is kept back, and some for the models
    assert "the search ends after" in done.err


def test_a_dry_run_refuses_a_folder_and_a_database_that_cannot_be_used(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "diary.txt").write_text("mine", encoding="utf-8")
    (tmp_path / "broken.db").write_text("no database at all, but some text", encoding="utf-8")
    table(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    for out, options, told in (
        ("file/run", (), "file is not a folder"),
        ("taken", (), "holds files that are no run"),
        ("study", ("--storage", "postgresql+psycopg://nobody@127.0.0.1:9/none"), "127.0.0.1"),
        ("study", ("--storage", tmp_path / "broken.db"), "broken.db"),
    ):
        run(*search_line(tmp_path, "--dry-run", *options, out=out)).refused(told)
    assert sorted(tmp_path.rglob("*")) == before
