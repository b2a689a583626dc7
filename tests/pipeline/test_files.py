"""Pipelines in YAML files, and the values of `--set`."""

from pathlib import Path

import pytest

from formwright.pipeline.files import read_pipeline_file, value_of
from formwright.pipeline.train_model import TrainModel


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-5", 1e-5),
        ("-2E+3", -2000.0),
        ("1.5", 1.5),
        ("3", 3),
        ("true", True),
        ("[1e-3, 2]", [0.001, 2]),
        ("1e", "1e"),
        ("macs<=50%", "macs<=50%"),
        ("{", "{"),
    ],
)
def test_a_value_is_read_as_a_person_writes_it(text: str, value: object) -> None:
    assert value_of(text) == value


def test_a_training_is_a_pipeline_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "train.yaml"
    path.write_text(
        "stages:\n  train:\n    stage: train\n    source: bert-tiny\n    task: {name: digits}\n"
        "    training: {learning_rate: 1e-4, steps: 5}\n    judging: {test: true}\n",
        encoding="utf-8",
    )
    (stage,) = read_pipeline_file(path).of_kind(TrainModel)
    assert (stage.training.learning_rate, stage.training.steps, stage.training.batch) == (1e-4, 5, 32)
    assert stage.judging.test
