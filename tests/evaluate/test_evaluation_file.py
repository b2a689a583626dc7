"""What a folder says of the evaluation of its model."""

import json

from tests.train.cases import ENCODER, LENGTH

from formwright.evaluate.evaluation_file import evaluation_of
from formwright.tasks.bootstrap import Evidence
from formwright.tasks.rows import Splits, TextRows
from formwright.tasks.task import Task
from formwright.train.prepare import prepare


def rows(*numbers: int) -> TextRows:
    texts = tuple((f"text {number}",) for number in numbers)
    return TextRows(texts, tuple(number % 2 for number in numbers), numbers=numbers, source="mine.csv")


def test_every_split_has_its_own_scores_intervals_and_places() -> None:
    splits = Splits(rows(0, 1, 4, 5), rows(2, 7), rows(3, 6))
    task = Task("mine", "sequence-classification", "accuracy", lambda: splits, labels=("no", "yes"))
    evidence = {"validation": Evidence(2, {"accuracy": (0.2, 0.8)}), "test": Evidence(2, {"accuracy": (0.1, 0.9)})}
    prepared = prepare(task, ENCODER, LENGTH)
    found = json.loads(json.dumps(evaluation_of(prepared, {"accuracy": 0.5}, {"accuracy": 1.0}, evidence)))
    assert found["scores"] == {"validation": {"accuracy": 0.5}, "test": {"accuracy": 1.0}}
    assert found["intervals"] == {"validation": {"accuracy": [0.2, 0.8]}, "test": {"accuracy": [0.1, 0.9]}}
    assert {split: place["indices"] for split, place in found["rows"].items()} == {"validation": [2, 7], "test": [3, 6]}
    assert (found["length"], found["labels"]) == (prepared.length, ["no", "yes"])
    assert evaluation_of(prepared, {"accuracy": 0.5})["scores"]["test"] is None
