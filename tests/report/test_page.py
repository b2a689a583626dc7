"""The page is one file that loads nothing, runs our scripts alone, and shows hostile text as text."""

import base64
import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.report.studies import SPACE, WORKER, ask, fail, new_log, tell
from tests.report.test_markup import read

from formwright.report.facts import study_facts
from formwright.report.page import report_html
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


def test_hostile_names_make_no_elements(page: str) -> None:
    tags = [name for name, _ in read(without_scripts(page)).tags]
    assert tags.count("script") == 4  # the data, plotly, and those of the head and the trials
    assert "img" not in tags
    assert page.count("<script") == page.count("</script") == 4


def test_no_attribute_runs_code(page: str) -> None:
    for _, attributes in read(without_scripts(page)).tags:
        assert not [name for name in attributes if name.startswith("on")]


def test_hostile_names_are_shown_as_they_are(page: str) -> None:
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
