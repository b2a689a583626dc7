"""The finding is one true sentence, at every stage of a study."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.report.studies import SPACE, new_log, small_study

from formwright.report.facts import StudyFacts, study_facts
from formwright.report.figures import short_count
from formwright.report.sentence import what_was_found


@pytest.fixture
def facts(tmp_path: Path) -> StudyFacts:
    return study_facts(small_study(tmp_path), SPACE)


def test_best_model_beside_the_baseline(facts: StudyFacts) -> None:
    assert what_was_found(facts) == (
        f"The best design, trial {facts.best}, has accuracy 0.7400 on the test split with 90.0 k parameters; "
        "the hand-made baseline with 90.0 k parameters has 0.7000."
    )


def test_without_test_scores_validation_speaks(facts: StudyFacts) -> None:
    models = tuple(replace(model, test={}) for model in facts.models)
    sentence = what_was_found(replace(facts, models=models))
    assert "accuracy 0.7500 on the validation split" in sentence
    assert sentence.endswith("has 0.7100.")


def test_without_a_baseline_nothing_is_compared(facts: StudyFacts) -> None:
    assert "baseline" not in what_was_found(replace(facts, models=facts.models[:1]))


def test_a_teacher_is_compared_with_first(facts: StudyFacts) -> None:
    teacher = replace(facts.models[0], role="teacher", params=22_700_000, test={"accuracy": 0.83})
    sentence = what_was_found(replace(facts, models=(teacher, *facts.models)))
    assert sentence.endswith("; the teacher with 22.7 M parameters has 0.8300.")


def test_before_the_final_models(facts: StudyFacts) -> None:
    best = facts.best_row
    assert best is not None
    size = short_count(best.costs["params"])
    expected = f"The best design so far, trial {best.number}, has accuracy 0.7400 with {size} parameters."
    assert what_was_found(replace(facts, models=())) == expected
    assert what_was_found(replace(facts, models=(), over="40 trials")) == expected.replace(" so far", "")


def test_when_no_trial_keeps_the_limits(facts: StudyFacts) -> None:
    assert what_was_found(replace(facts, best=None)) == "No trial so far keeps all limits."
    assert what_was_found(replace(facts, best=None, over="40 trials")) == "No trial keeps all limits."


def test_before_the_first_trial(tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    facts = study_facts(new_log(tmp_path / "new"), SPACE)
    assert what_was_found(facts) == "No trial has finished yet."
    assert what_was_found(replace(facts, over="failures")) == "No trial has finished."
