"""The finding is one true sentence, at every stage of a study."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.report.studies import SPACE, new_log, small_study

from formwright.report.facts import StudyFacts, study_facts
from formwright.report.figures import short_count
from formwright.report.sentence import what_was_found
from formwright.study.conclusion import Comparison
from formwright.tasks.bootstrap import Difference
from formwright.tasks.evidence import Evidence, Majority


@pytest.fixture
def facts(tmp_path: Path) -> StudyFacts:
    return study_facts(small_study(tmp_path), SPACE)


def test_best_model_beside_the_baseline(facts: StudyFacts) -> None:
    told = what_was_found(facts)
    for fact in (f"trial {facts.best}", "test accuracy 0.7400", "90.0 k parameters", "baseline", "0.7000"):
        assert fact in told


def test_without_test_scores_validation_speaks(facts: StudyFacts) -> None:
    models = tuple(replace(model, test={}) for model in facts.models)
    sentence = what_was_found(replace(facts, models=models))
    assert "validation accuracy 0.7500" in sentence
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


def test_a_model_that_guesses_is_said_to_before_all_else(facts: StudyFacts) -> None:
    guess = Majority(
        "always answering 'good'", {"accuracy": 0.8}, {"accuracy": Difference(-0.06, (-0.1, -0.02), False)}
    )
    evidence = {"test": Evidence(204, {"accuracy": (0.68, 0.8)}, guess)}
    models = (replace(facts.models[0], evidence=evidence), *facts.models[1:])
    lead = Comparison(models[0].name, "baseline", "accuracy", "test", Difference(0.04, (0.01, 0.07), False))
    told = what_was_found(replace(facts, models=models, comparisons={models[0].name: lead}))
    assert told.index("No better than guessing") < told.index("0.7400") < told.index("0.6800 to 0.8000")
    assert "always answering 'good' gives 0.8000" in told
    assert "better than the" not in told.lower().replace("better than guessing", "")
    sure = replace(guess, differences={"accuracy": Difference(0.06, (0.02, 0.1), False)})
    models = (replace(facts.models[0], evidence={"test": replace(evidence["test"], majority=sure)}), *facts.models[1:])
    told = what_was_found(replace(facts, models=models, comparisons={models[0].name: lead}))
    assert "is better than the hand-made baseline" in told
