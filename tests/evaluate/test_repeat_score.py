"""When a score counts as repeated."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.train.cases import ENCODER, LENGTH, SPANS

from formwright.evaluate import repeat_score as module
from formwright.evaluate.repeat_score import RepeatedScore, repeat_score
from formwright.tasks.bootstrap import Evidence


@pytest.mark.parametrize(
    ("recorded", "repeats"),
    [
        ({"accuracy": 0.75, "f1": 0.5}, True),
        ({"accuracy": 0.75 + 1e-9}, True),
        ({"accuracy": 0.7501, "f1": 0.5}, False),
        ({"accuracy": 0.75, "f1": 0.4999}, False),
        ({"accuracy": 0.75, "matthews": 0.0}, False),
        (None, None),
    ],
)
def test_scores_repeat_up_to_the_last_digits(recorded: dict[str, float] | None, repeats: bool | None) -> None:
    metrics = {"accuracy": 0.75, "f1": 0.5}
    found = RepeatedScore("mine", "validation", 8, "accuracy", 16, metrics, Evidence(8, {}), recorded)
    assert found.repeats is repeats


def test_other_runtimes_may_differ_a_little() -> None:
    found = RepeatedScore("t", "validation", 8, "pearson", 16, {"pearson": 0.50001}, Evidence(8, {}), {"pearson": 0.5})
    assert found.repeats is False
    assert replace(found, tolerance=1e-4).repeats is True
    assert replace(found, tolerance=1e-4, recorded={"pearson": 0.501}).repeats is False


class Seen(Exception):
    pass


@pytest.mark.parametrize(("evaluation", "beams"), [({"beams": 3}, 3), ({}, 1), (None, 1)])
def test_texts_are_written_with_the_beams_that_the_folder_records(
    evaluation: dict[str, int] | None, beams: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def judged(_: Any, prepared: Any, __: Any) -> None:
        assert prepared.beams == beams
        raise Seen

    loaded: Any = SimpleNamespace(folder=Path("mine"), model=None, length=LENGTH, tokeniser=None, evaluation=evaluation)
    loaded.imported = SimpleNamespace(card=ENCODER)
    monkeypatch.setattr(module, "head_fits", lambda *_: True)
    monkeypatch.setattr(module, "judged", judged)
    with pytest.raises(Seen):
        repeat_score(loaded, SPANS, "validation")


@pytest.mark.parametrize(
    ("kind", "recorded", "length"),
    [("masked-lm", 8, 8), ("masked-lm", 0, 16), ("masked-lm", None, 16), ("sequence-classification", 8, 16)],
)
def test_pieces_of_text_have_the_length_that_was_recorded_if_one_was(kind: str, recorded: Any, length: int) -> None:
    loaded: Any = SimpleNamespace(evaluation={"length": recorded}, length=16)
    assert module._length(loaded, SimpleNamespace(kind=kind)) == length
