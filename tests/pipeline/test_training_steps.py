"""What a training wrote down is read by others."""

import math
from pathlib import Path

import pytest

from formwright.pipeline import training_steps
from formwright.pipeline.training_steps import read_steps, step_writer


def test_the_last_step_of_each_training_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training_steps, "SECONDS", 0.0)
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    one, two = step_writer(tmp_path / "one"), step_writer(tmp_path / "two")
    one(0, 0.7)
    two(4, math.nan)
    one(1, 0.1 + 0.2)
    found = read_steps(tmp_path)
    assert found["one"] == (1, 0.1 + 0.2)
    assert found["two"][0] == 4
    assert math.isnan(found["two"][1])


def test_not_every_step_is_worth_writing(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    after_step = step_writer(tmp_path / "one")
    for step in range(100):
        after_step(step, 0.5)
    assert read_steps(tmp_path) == {"one": (0, 0.5)}


def test_nothing_yet(tmp_path: Path) -> None:
    assert read_steps(tmp_path / "absent") == {}
