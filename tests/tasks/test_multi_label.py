import numpy as np
import pytest
from sklearn.metrics import accuracy_score, f1_score

from formwright.core.errors import IllegalInput
from formwright.tasks.metrics import metric
from formwright.tasks.multi_label import best_constant, micro_f1, subset_hits

RNG = np.random.default_rng(0)
TRUE, GUESSED = RNG.random((40, 6)) < 0.3, RNG.random((40, 6)) < 0.4
TRUE[:, 5] = GUESSED[:, 5] = False  # a label that never occurs


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("micro-f1", f1_score(TRUE, GUESSED, average="micro")),
        ("macro-f1", f1_score(TRUE, GUESSED, average="macro", zero_division=0)),
        ("subset-accuracy", accuracy_score(TRUE, GUESSED)),
    ],
)
def test_metrics_are_those_of_scikit_learn(name: str, expected: float) -> None:
    assert metric(name).compute(GUESSED, TRUE.astype(np.float32)) == pytest.approx(expected)
    assert metric(name).compute(TRUE, TRUE) == (5 / 6 if name == "macro-f1" else 1.0)
    assert metric(name).direction == "max"


def test_nothing_found_and_nothing_there_is_no_number_but_0() -> None:
    assert micro_f1([[0, 0]], [[0, 0]]) == 0.0


def test_rows_count_where_all_their_labels_are_right() -> None:
    assert subset_hits([[1, 0], [1, 1], [0, 0]], [[1, 0], [1, 0], [0, 0]]).tolist() == [1.0, 0.0, 1.0]


def test_no_other_constant_answer_has_a_better_f1() -> None:
    best = micro_f1([best_constant(TRUE)] * len(TRUE), TRUE)
    answers = [[(number >> place) & 1 for place in range(6)] for number in range(64)]
    assert best == max(micro_f1([answer] * len(TRUE), TRUE) for answer in answers)
    assert best_constant([[1, 0, 1], [1, 0, 0], [1, 0, 0]]) == (1, 0, 0)


@pytest.mark.parametrize("pair", [([[1]], [[1, 0]]), ([1, 0], [1, 0]), ([], [])])
def test_tables_must_be_equal(pair: tuple[object, object]) -> None:
    with pytest.raises(IllegalInput, match="equal tables"):
        micro_f1(*pair)
