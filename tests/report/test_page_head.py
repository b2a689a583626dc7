from dataclasses import replace
from pathlib import Path

import pytest
from tests.report.studies import LENGTH, SPACE, WHOLE, compressed_facts, new_log, small_study
from tests.report.test_markup import read

from formwright.core.records import Objective
from formwright.cost import macs
from formwright.pipeline.conclusion import Comparison
from formwright.pipeline.delivered import MeasurementSession
from formwright.report.facts import StudyFacts, study_facts
from formwright.report.figures import short_count
from formwright.report.page_head import best_design, header, main_result, models_table
from formwright.tasks.bootstrap import Difference, Evidence, Majority


@pytest.fixture
def facts(tmp_path: Path) -> StudyFacts:
    return study_facts(small_study(tmp_path), SPACE)


def test_the_main_result_compares_with_teacher_or_baseline(facts: StudyFacts) -> None:
    told = main_result(facts)
    for fact in (f"trial {facts.best}", "test accuracy 0.7400", "90.0 k parameters", "baseline", "0.7000"):
        assert fact in told
    unopened = main_result(replace(facts, models=tuple(replace(model, test={}) for model in facts.models)))
    assert "validation accuracy 0.7500" in unopened
    assert "0.7100" in unopened
    assert "baseline" not in main_result(replace(facts, models=facts.models[:1]))
    teacher = replace(facts.models[0], role="teacher", params=22_700_000, test={"accuracy": 0.83})
    told = main_result(replace(facts, models=(teacher, *facts.models)))
    for fact in ("the teacher", "22.7 M parameters", "0.8300"):
        assert fact in told


def test_before_the_final_models_the_best_trial_speaks(facts: StudyFacts) -> None:
    best = facts.best_row
    assert best is not None
    told = main_result(replace(facts, models=()))
    for fact in (f"trial {best.number}", "accuracy 0.7400", short_count(best.costs["params"]), "so far"):
        assert fact in told
    assert "so far" not in main_result(replace(facts, models=(), over="40 trials"))


@pytest.mark.parametrize("finished", [True, False])
def test_without_a_result_the_reason_is_given(facts: StudyFacts, finished: bool, tmp_path: Path) -> None:
    bare = replace(facts, best=None) if finished else study_facts(new_log(tmp_path / "new"), SPACE)
    running, over = main_result(bare), main_result(replace(bare, over="40 trials"))
    assert running != over
    assert all(("limits" in told) == finished for told in (running, over))


def test_a_model_that_guesses_is_said_to_before_all_else(facts: StudyFacts) -> None:
    guess = Majority(
        "always answering 'good'", {"accuracy": 0.8}, {"accuracy": Difference(-0.06, (-0.1, -0.02), False)}
    )
    evidence = {"test": Evidence(204, {"accuracy": (0.68, 0.8)}, guess)}
    models = (replace(facts.models[0], evidence=evidence), *facts.models[1:])
    lead = Comparison(models[0].name, "baseline", "accuracy", "test", Difference(0.04, (0.01, 0.07), False))
    told = main_result(replace(facts, models=models, comparisons={models[0].name: lead}))
    assert told.index("No better than guessing") < told.index("0.7400") < told.index("0.6800 to 0.8000")
    assert "always answering 'good' gives 0.8000" in told
    assert "better than the" not in told.lower().replace("better than guessing", "")
    sure = replace(guess, differences={"accuracy": Difference(0.06, (0.02, 0.1), False)})
    models = (replace(facts.models[0], evidence={"test": replace(evidence["test"], majority=sure)}), *facts.models[1:])
    told = main_result(replace(facts, models=models, comparisons={models[0].name: lead}))
    assert "is better than the hand-made baseline" in told


def test_the_header_names_task_space_goals_and_command(facts: StudyFacts) -> None:
    limited = replace(facts, objectives=(*facts.objectives, Objective("params", "min", 5e6)))
    words = read(header(limited)).words
    for expected in ("mini-glue/sst2 in flexibert-nano", "maximise accuracy", "minimise params", "seed 0", "nsga2"):
        assert expected in words
    assert "params \N{LESS-THAN OR EQUAL TO} 5,000,000" in words
    assert "formwright search --seed 0Copy" in words
    assert "Copy" not in read(header(replace(facts, run=replace(facts.run, command="")))).words
    assert "still running" in words
    assert "ended: 40 trials" in read(header(replace(facts, over="40 trials"))).words
    few = replace(facts, config={**facts.config, "evaluator": {"name": "shared", "rows": 1512}})
    assert ("judged by" in words, "judged by 1,512 rows" in read(header(few)).words) == (False, True)


def test_warnings_about_the_data_stand_in_the_header(tmp_path: Path, facts: StudyFacts) -> None:
    assert "Warning" not in read(header(facts)).words
    log = small_study(tmp_path / "other")
    warning = {"kind": "shared-rows", "count": 3, "message": "3 of 9 test rows <b>are</b> also in train"}
    log.append("started", "machine/1/2", {"begins": True, "data_warnings": [warning]})
    page = header(study_facts(log, SPACE))
    assert "3 of 9 test rows <b>are</b> also in train" in read(page).words
    assert "<b>are</b>" not in page


def test_the_best_design_is_drawn(facts: StudyFacts) -> None:
    page = best_design(facts)
    assert [name for name, _ in read(page).tags].count("svg") == 1
    assert f"Trial {facts.best}" in page
    assert "svg" not in [name for name, _ in read(best_design(replace(facts, best=None))).tags]


def test_the_table_of_models_has_both_splits_and_costs(facts: StudyFacts, tmp_path: Path) -> None:
    reader = read(models_table(facts))
    assert [name for name, _ in reader.tags].count("tr") == 4
    for expected in ("validation accuracy", "test accuracy", "0.7500", "0.7400", "0.7000", "90,000", "1,000"):
        assert expected in reader.words
    assert models_table(replace(facts, models=())) == ""
    reader = read(models_table(compressed_facts(tmp_path / "compressed")))
    assert "Parameterslatencyonnxint8macsSteps" in reader.words
    for expected in ("3.25 ms", "2.12 ms", "1.50 ms", f"{macs(WHOLE, LENGTH):,}"):
        assert expected in reader.words
    assert reader.words.index("teacher") < reader.words.index("trial-0")
    assert "ParametersSteps" in read(models_table(facts)).words


@pytest.mark.parametrize(
    ("config", "name"),
    [
        ({"task": {"name": "a"}, "space": "s"}, "a in s"),
        ({"task": "b", "space": {"python": "mine#1234"}}, "b in mine"),
        ({"space": "s"}, "s"),
        ({"task": None, "space": None}, "unnamed"),
    ],
)
def test_the_title_names_task_and_space(facts: StudyFacts, config: dict[str, object], name: str) -> None:
    assert f"<h1>{name}</h1>" in header(replace(facts, config=config)).replace(
        '<span class="quiet"> in </span>', " in "
    )


def test_steps_and_the_length_of_what_was_measured_are_told_where_there_are_any(tmp_path: Path) -> None:
    facts = compressed_facts(tmp_path)
    assert f"{facts.length} tokens" in read(models_table(facts)).words
    session = MeasurementSession(16, "cpu", 1, True, {}, {})
    words = read(models_table(replace(facts, session=session))).words
    assert "in turns" in words
    assert "busy" in words
    assert ("Steps" in models_table(facts), "Final models" in models_table(facts)) == (True, True)
    still = replace(facts, models=tuple(replace(model, steps=0) for model in facts.models))
    assert ("Steps" in models_table(still), "Delivered models" in models_table(still)) == (False, True)
    rows = models_table(still).split("<tr>")
    assert len({row.count("</td>") + row.count("</th>") for row in rows[1:]}) == 1
