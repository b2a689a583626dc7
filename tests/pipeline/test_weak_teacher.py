"""A teacher is compared with an answer that ignores the input."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.compress.tiny import LENGTH, bert
from tests.evaluate.toy import TASK

from formwright.core.rng import derive
from formwright.pipeline.pretrained import read_pretrained
from formwright.pipeline.task_models import Weakness, find_weakness
from formwright.train import constant_baseline, judge
from formwright.train.judge import Judged, scored, tables_of

Weak = Callable[..., Weakness | None]


@pytest.fixture
def weak(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Weak:
    """Give a function that judges answers to so many rows of which some have the label 1."""
    prepared = read_pretrained(str(bert(tmp_path)), TASK, LENGTH).prepared

    def call(found: Any, truth: Any, metric: str = "accuracy", kind: str = "sequence-classification") -> Any:
        pairs = {metric: (np.asarray(found), np.asarray(truth))}
        monkeypatch.setattr(judge, "judged", lambda *_: Judged(scored(pairs), tables_of(pairs)))
        monkeypatch.setattr(constant_baseline, "truths", lambda _: np.asarray(truth))
        task = replace(prepared.task, metric=metric, metrics=(metric,), kind=kind)
        return find_weakness(SimpleNamespace(), replace(prepared, task=task))  # type: ignore[arg-type]

    return call


def rows(number: int, ones: float, right: float) -> tuple[Any, Any]:
    """Give answers of which a share is right, to rows of which a share has the label 1."""
    truth = (np.arange(number) < ones * number).astype(int)
    wrong = derive(0).permutation(number) >= right * number
    return np.where(wrong, 1 - truth, truth), truth


def test_the_teacher_of_the_finding_is_weak(weak: Weak) -> None:
    """0.585 on 8,000 pairs, of which 0.486 is chance: told apart, and yet near it."""
    found = weak(*rows(8000, 0.486, 0.585))
    assert found is not None
    assert found.told_apart
    assert found.score == pytest.approx(0.585, abs=0.002)
    assert found.constant == pytest.approx(0.514, abs=0.002)
    assert "0.58" in str(found)
    assert "always answering" in found.answer


def test_a_teacher_that_always_gives_the_same_answer_is_weak(weak: Weak) -> None:
    found = weak(np.ones(500, int), rows(500, 0.7, 1.0)[1])
    assert found is not None
    assert not found.told_apart


def test_few_rows_prove_little(weak: Weak) -> None:
    found = weak(*rows(10, 0.5, 0.7))  # two fifths of what is possible, which may be chance
    assert found is not None
    assert not found.told_apart
    assert weak(*rows(10, 0.5, 1.0)) is None


@pytest.mark.parametrize("metric", ["accuracy", "matthews", "f1"])
def test_a_good_teacher_is_not_weak(weak: Weak, metric: str) -> None:
    assert weak(*rows(1000, 0.5, 0.9), metric) is None


def test_the_majority_class_counts_not_a_half(weak: Weak) -> None:
    assert weak(*rows(1000, 0.9, 0.91)) is not None
    assert weak(*rows(1000, 0.5, 0.91)) is None


def test_a_regression_is_compared_with_the_mean(weak: Weak) -> None:
    truth = np.linspace(0, 5, 200)
    noise = np.where(np.arange(200) % 2, 1.0, -1.0)
    assert weak(truth + noise, truth, "pearson", "regression") is None
    assert weak(noise, truth, "pearson", "regression") is not None
