"""The top of the page says what was searched and shows the best design."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.report.compressed import LENGTH, WHOLE, compressed_facts
from tests.report.studies import SPACE, small_study
from tests.report.test_markup import read

from formwright.core.records import Objective
from formwright.cost import macs
from formwright.report.facts import StudyFacts, study_facts
from formwright.report.page_head import best_design, header, models_table, task_of
from formwright.study.sitting import Sitting


@pytest.fixture
def facts(tmp_path: Path) -> StudyFacts:
    return study_facts(small_study(tmp_path), SPACE)


def test_the_header_names_task_space_goals_and_command(facts: StudyFacts) -> None:
    limited = replace(facts, objectives=(*facts.objectives, Objective("params", "min", 5e6)))
    words = read(header(limited)).words
    for expected in ("mini-glue/sst2 in flexibert-nano", "maximise accuracy", "minimise params", "seed 0", "nsga2"):
        assert expected in words
    assert "params \N{LESS-THAN OR EQUAL TO} 5,000,000" in words
    assert "formwright search --seed 0Copy" in words
    assert "still running" in words
    assert "ended: 40 trials" in read(header(replace(facts, over="40 trials"))).words
    few = replace(facts, config={**facts.config, "judged_rows": 1512})
    assert ("judged by" in words, "judged by 1,512 rows" in read(header(few)).words) == (False, True)


def test_warnings_about_the_data_stand_in_the_header(tmp_path: Path, facts: StudyFacts) -> None:
    assert "Warning" not in read(header(facts)).words
    (tmp_path / "other").mkdir()
    log = small_study(tmp_path / "other")
    warning = {"kind": "shared-rows", "count": 3, "message": "3 of 9 test rows <b>are</b> also in train"}
    log.append("started", "machine/1/2", {"begins": True, "data_warnings": [warning]})
    page = header(study_facts(log, SPACE))
    assert "3 of 9 test rows <b>are</b> also in train" in read(page).words
    assert "<b>are</b>" not in page


def test_without_a_command_there_is_nothing_to_copy(facts: StudyFacts) -> None:
    assert "Copy" not in read(header(replace(facts, command=""))).words


def test_the_best_design_is_drawn(facts: StudyFacts) -> None:
    page = best_design(facts)
    assert [name for name, _ in read(page).tags].count("svg") == 1
    assert f"Trial {facts.best}" in page
    assert "svg" not in [name for name, _ in read(best_design(replace(facts, best=None))).tags]


def test_the_table_of_models_has_both_splits(facts: StudyFacts) -> None:
    reader = read(models_table(facts))
    assert [name for name, _ in reader.tags].count("tr") == 4
    for expected in ("validation accuracy", "test accuracy", "0.7500", "0.7400", "0.7000", "90,000", "1,000"):
        assert expected in reader.words
    assert models_table(replace(facts, models=())) == ""


def test_costs_of_models_are_further_columns(tmp_path: Path, facts: StudyFacts) -> None:
    (tmp_path / "compressed").mkdir()
    reader = read(models_table(compressed_facts(tmp_path / "compressed")))
    assert "Parameterslatencyonnxint8macsSteps" in reader.words
    for expected in ("3.25 ms", "2.12 ms", "1.50 ms", f"{macs(WHOLE, LENGTH):,}"):
        assert expected in reader.words
    assert reader.words.index("teacher") < reader.words.index("trial-0")
    assert "ParametersSteps" in read(models_table(facts)).words


@pytest.mark.parametrize(
    ("config", "name"),
    [({"task": {"name": "a"}}, "a"), ({"task": "b"}, "b"), ({}, "unnamed"), ({"task": {}}, "unnamed")],
)
def test_the_name_of_the_task(config: dict[str, object], name: str) -> None:
    assert task_of(config) == name


def test_models_that_were_not_trained_alone_have_no_steps(tmp_path: Path) -> None:
    facts = compressed_facts(tmp_path)
    assert ("Steps" in models_table(facts), "Final models" in models_table(facts)) == (True, True)
    still = replace(facts, models=tuple(replace(model, steps=0) for model in facts.models))
    assert ("Steps" in models_table(still), "Delivered models" in models_table(still)) == (False, True)
    rows = models_table(still).split("<tr>")
    assert len({row.count("</td>") + row.count("</th>") for row in rows[1:]}) == 1


def test_the_length_of_what_was_measured_is_told(tmp_path: Path, facts: StudyFacts) -> None:
    compressed = compressed_facts(tmp_path / "compressed")
    assert f"{compressed.length} tokens" in read(models_table(compressed)).words
    sitting = Sitting(16, "cpu", 1, True, {}, {})
    words = read(models_table(replace(compressed, sitting=sitting))).words
    assert "in turns" in words
    assert "busy" in words
