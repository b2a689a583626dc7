"""A page is one file that loads nothing, runs our scripts alone, and shows hostile text as text, or a training."""

import base64
import hashlib
import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
from tests.report.cards import flexibert_mini
from tests.report.studies import SPACE, WORKER, ask, fail, new_log, tell
from tests.report.test_markup import read

from formwright.pipeline.pipeline import Pipeline
from formwright.pipeline.run import PipelineRun
from formwright.pipeline.run_folder import RunRecord
from formwright.pipeline.train_model import train_pipeline
from formwright.report.facts import study_facts
from formwright.report.page import report_html, write_page, write_run_page
from formwright.report.page_training import draw_curve, training_section
from formwright.study.store import Log

EVIL = "</script><script>window.hacked = 1</script><img src=x onerror='window.hacked=1'><b>bold</b>\u2028$title ${data}"


def hostile_study(folder: Path) -> Log:
    """Write a study in which everything that can be named has a name that tries to break out."""
    evil = {"task": {"name": EVIL}, "searcher": {"name": EVIL}, "extra": {EVIL: EVIL}}
    stages = {"space": {"stage": "space"}}
    log = new_log(folder, name=EVIL.replace("\u2028", "").replace("/", ""), stages=stages, **evil)
    log.append("note", EVIL, {"command": EVIL})
    for number in range(3):
        ask(log, number)
        tell(log, number, **{"accuracy": 0.5 + 0.1 * number, EVIL: 0.1 * number})
    ask(log, 3)
    fail(log, 3, EVIL)
    for role in ("best", "baseline", EVIL):
        model = {"name": EVIL + role, "role": role, "path": EVIL, "validation": {"accuracy": 0.5, EVIL: 0.5}}
        log.append("note", WORKER, {"model": model})
    teacher = {
        "name": EVIL + "teacher",
        "role": "teacher",
        "validation": {"accuracy": 0.5},
        "costs": {f"{EVIL}_ms": 2.0},
    }
    log.append("note", WORKER, {"model": teacher})
    space = {"full": [[2, 8]], "heads": [[0, 2]], "channels": [[4, 8]], "hidden": [8]}
    log.append("note", WORKER, {"compress": {"model": EVIL, "space": space, "cost": EVIL}})
    log.append("stopped", WORKER, {"reason": EVIL})
    return log


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    return report_html([study_facts(hostile_study(tmp_path_factory.mktemp("study")), SPACE)])


def data_of(page: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    data: dict[str, Any] = json.loads(found[1])["trials"]
    return data


def without_scripts(page: str) -> str:
    return re.sub(r"(<script[^>]*>).*?</script>", r"\1</script>", page, flags=re.DOTALL)


def test_hostile_names_are_shown_as_they_are_and_make_no_elements_or_code(page: str) -> None:
    tags = [name for name, _ in read(without_scripts(page)).tags]
    assert tags.count("script") == 4  # the data, plotly, and those of the head and the trials
    assert "img" not in tags
    assert page.count("<script") == page.count("</script") == 4
    for _, attributes in read(without_scripts(page)).tags:
        assert not [name for name in attributes if name.startswith("on")]
    assert read(without_scripts(page)).words.count(EVIL) > 8
    data = data_of(page)
    assert data["reasons"]["3"] == EVIL
    assert EVIL in [column["name"] for column in data["values"]]
    assert [column["name"] for column in data["model_values"]] == [f"{EVIL}_ms"]


def test_the_policy_knows_our_scripts_by_their_hashes(page: str) -> None:
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    assert "default-src 'none'" in policy[1]
    for script in re.findall(r"<script>(.*?)</script>", page, re.DOTALL):
        hashed = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        assert f"'sha256-{hashed}'" in policy[1]


def test_nothing_is_loaded_from_elsewhere(page: str) -> None:
    for name, attributes in read(without_scripts(page)).tags:
        assert not {"src", "srcset", "action"} & attributes.keys(), name
        assert (attributes.get("href") or "#").startswith("#"), name
    assert "@import" not in without_scripts(page)
    assert "url(" not in without_scripts(page)


def test_a_page_of_nothing(tmp_path: Path) -> None:
    page = report_html([study_facts(new_log(tmp_path), SPACE)])
    assert "No trial has finished yet." in page
    assert data_of(page)["trials"]["number"] == []


CARD = flexibert_mini()
FACTS: dict[str, Any] = {
    "name": "mine <b>", "digest": CARD.digest, "params": 12_345, "card": CARD.to_json(), "task": "mini-glue/sst2",
    "steps": 3, "best_step": 2, "losses": [0.7, 0.6, 0.65], "metrics": {"accuracy": 0.75}, "test": {"accuracy": 0.5},
    "evidence": {}, "conclusion": ["mine is fine"], "beams": 1, "padding": 0.25, "length": 32, "cut": 0.0,
    "recipe": {}, "seconds": 1.5, "model": "somewhere",
}  # fmt: skip


def training_run(folder: Path) -> PipelineRun:
    pipeline = train_pipeline(CARD, "mini-glue/sst2", steps=3)
    return PipelineRun(Pipeline.from_json(pipeline.to_json()), folder)


def page_of(run: PipelineRun) -> str:
    write_run_page(run)
    return (run.out / "report.html").read_text(encoding="utf-8")


def test_a_finished_training_shows_scores_and_curve(tmp_path: Path) -> None:
    run = training_run(tmp_path)
    (tmp_path / "train").mkdir()
    (tmp_path / "train" / "result.json").write_text(json.dumps(FACTS), encoding="utf-8")
    (tmp_path / "train" / "done.json").touch()
    page = page_of(run)
    words = read(page).words
    for expected in ("mine <b>", "mine is fine", "0.7500", "0.5000", "12,345", "1 of 1 stages"):
        assert expected in words
    assert 'class="stage done" data-stage="train"' in page
    assert 'class="curve"' in page
    assert "plotly" not in page


def test_a_training_that_has_not_ended_shows_its_pipeline(tmp_path: Path) -> None:
    RunRecord.of(training_run(tmp_path), {}).write(tmp_path)
    page = write_page(str(tmp_path)).read_text(encoding="utf-8")  # as `formwright report` does, from files alone
    assert 'class="stage open" data-stage="train"' in page
    assert 'class="curve"' not in page


@pytest.mark.parametrize("count", [1, 299, 10_000])
def test_a_curve_has_a_point_for_each_step_or_for_means_of_them(count: int) -> None:
    drawn = draw_curve([1.0 / (step + 1) for step in range(count)], count)
    points = next(part for part in drawn.split("<path") if 'class="curve"' in part).count(",")
    assert points == min(count, 300) or 150 < points <= 300


def test_losses_that_are_no_numbers_are_left_out() -> None:
    assert draw_curve([math.nan, math.inf], 1) == ""
    assert 'class="curve"' in draw_curve([0.5, math.nan, 0.25], 1)
    assert "Training loss" not in training_section({**FACTS, "losses": [math.nan]})
