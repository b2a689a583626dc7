"""What is claimed of delivered models: nothing that their rows do not carry."""

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from tests.pipeline.cases import films_study

from formwright.core.rng import derive
from formwright.evaluate.evaluation_file import keep_tables
from formwright.nn.hf.readme import README
from formwright.pipeline.compare import comparisons, conclusion, note_comparisons
from formwright.pipeline.conclusion import between, score_facts
from formwright.pipeline.delivered import MODELS, Delivered, Role, delivered
from formwright.pipeline.delivery import FINAL
from formwright.pipeline.designs import find_space
from formwright.pipeline.study_place import Opened
from formwright.report.facts import study_facts
from formwright.report.page_head import models_table
from formwright.tasks.bootstrap import Difference, Evidence, Majority, differences, intervals

ROWS = 204
TRUTH = np.arange(ROWS) < 138  # of the majority class: 0.6765


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opened]:
    with films_study(tmp_path).open() as found:
        yield found


def deliver(opened: Opened, name: str, role: Role, right: np.ndarray, params: int = 1000) -> Delivered:
    """Note a model that answers some of the test rows right, as its delivery does."""
    tables = {"accuracy": right.astype(float)[:, None]}
    guess = {"accuracy": TRUTH.astype(float)[:, None]}
    ahead = differences(tables, guess, derive(0, "bootstrap"))["accuracy"]
    score = float(right.mean())
    majority = Majority(
        "always answering 'yes'",
        {"accuracy": float(TRUTH.mean())},
        {"accuracy": Difference(score - float(TRUTH.mean()), ahead, overlap=False)},
    )
    evidence = {"test": Evidence(ROWS, intervals(tables, derive(0, "bootstrap")), majority)}
    folder = opened.place.folder / MODELS / name
    folder.mkdir(parents=True)
    written = score_facts("films", "test", {"accuracy": score}, evidence["test"])
    (folder / README).write_text(f"# A model\n\n## Scores\n\n{written}\n", encoding="utf-8")
    keep_tables(tables, opened.place.folder / FINAL / name, "test")
    scores = {"accuracy": score}
    model = Delivered(name, role, name, str(folder), params, 60, scores, scores, 3, evidence=evidence)
    opened.log.append("note", "me", {"model": asdict(model)})
    return delivered(opened)[name]


def both(opened: Opened, found: np.ndarray, plain: np.ndarray) -> list[Delivered]:
    return [deliver(opened, "trial-3", "best", found), deliver(opened, "baseline", "baseline", plain, 2000)]


def concluded(opened: Opened, found: np.ndarray, plain: np.ndarray) -> tuple[list[str], str]:
    """Give what is said of a found model next to a baseline, and its model card."""
    models = both(opened, found, plain)
    note_comparisons(opened, models)
    return conclusion(opened, models), (Path(models[0].path) / README).read_text(encoding="utf-8")


def test_one_row_of_204_is_not_called_better(opened: Opened) -> None:
    lines, card = concluded(opened, np.arange(ROWS) < 190, np.arange(ROWS) < 189)
    assert "better" not in lines[1]
    assert all(word in lines[1] for word in ("cannot be told apart", "0.9314", "0.9265", "+0.0049", "50%"))
    assert lines[1] in card
    assert comparisons(opened.log.read())["trial-3"].difference.outcome == "not told apart"


def test_a_lead_that_the_rows_carry_is_called_better(opened: Opened) -> None:
    lines, card = concluded(opened, np.arange(ROWS) < 195, np.arange(ROWS) < 150)
    assert all(word in lines[0] for word in ("0.9559", "204 rows", "always answering 'yes'", "0.6765", "95 % interval"))
    assert "better than the baseline" in lines[1]
    assert "better than the baseline" in card


def test_intervals_that_overlap_are_no_lead_though_the_rows_differ(opened: Opened) -> None:
    lines, _ = concluded(opened, np.arange(ROWS) < 170, np.arange(ROWS) < 160)  # ahead in 10 rows, behind in none
    found = comparisons(opened.log.read())["trial-3"].difference
    assert found.interval is not None
    assert found.interval[0] > 0
    assert (found.overlap, found.outcome) == (True, "not told apart")
    assert "overlap" in lines[1]


def test_a_model_below_the_majority_class_is_no_win_over_a_baseline_further_below(opened: Opened) -> None:
    lines, card = concluded(opened, np.arange(ROWS) % 3 > 0, np.arange(ROWS) % 4 == 0)  # 0.667 and 0.25
    assert "better than the baseline" not in " ".join([*lines, card])
    assert "no better than guessing" in lines[0].lower()
    assert all(word in lines[0] for word in ("0.6667", "0.6765", "--learning-rate"))
    assert "0.6765" in card


def test_a_model_that_may_be_guessing_is_said_to(opened: Opened) -> None:
    lines, _ = concluded(opened, (np.arange(ROWS) + 62) % ROWS < 142, np.arange(ROWS) < 100)
    assert "guessing" in lines[0]


def test_the_page_says_the_same(opened: Opened) -> None:
    concluded(opened, np.arange(ROWS) % 3 > 0, np.arange(ROWS) % 4 == 0)
    facts = study_facts(opened.log, find_space(opened.search.space))
    assert facts.comparisons == comparisons(opened.log.read())
    table, found = models_table(facts), delivered(opened)["trial-3"]
    for words in ("always answering", "0.6765", between(found.evidence["test"].intervals["accuracy"])):
        assert words in table


def test_answers_that_are_lost_or_of_another_model_leave_the_intervals(opened: Opened) -> None:
    models = both(opened, np.arange(ROWS) < 195, np.arange(ROWS) < 150)
    file = opened.place.folder / FINAL / "baseline" / "rows-test.npz"
    for damaged in (b"", b"PK nonsense", None):
        file.unlink() if damaged is None else file.write_bytes(damaged)
        note_comparisons(opened, models)
        found = comparisons(opened.log.read())["trial-3"].difference
        assert (found.interval, found.outcome) == (None, "better")
    other = {"accuracy": (np.arange(ROWS) < 30).astype(float)[:, None]}
    keep_tables(other, file.parent, "test")
    note_comparisons(opened, models)
    assert comparisons(opened.log.read())["trial-3"].difference.interval is None


def test_a_compressed_model_is_compared_with_its_teacher(opened: Opened) -> None:
    deliver(opened, "baseline", "baseline", np.arange(ROWS) < 120)
    teacher = deliver(opened, "teacher", "teacher", np.arange(ROWS) < 195)
    model = deliver(opened, "half", "front", np.arange(ROWS) < 150)
    note_comparisons(opened, [model, teacher])
    found = comparisons(opened.log.read())
    assert list(found) == ["half"]
    assert (found["half"].other, found["half"].difference.outcome) == ("teacher", "worse")


def test_what_was_noted_is_noted_once(opened: Opened) -> None:
    models = both(opened, np.arange(ROWS) < 195, np.arange(ROWS) < 150)
    note_comparisons(opened, models)
    before, card = len(opened.log.read()), (Path(models[0].path) / README).read_text(encoding="utf-8")
    note_comparisons(opened, models)
    assert len(opened.log.read()) == before
    assert (Path(models[0].path) / README).read_text(encoding="utf-8") == card
    (Path(models[0].path) / README).unlink()
    note_comparisons(opened, models)  # a model card that was removed stays so
    assert not (Path(models[0].path) / README).exists()
