"""A model from elsewhere gets the head of a task, or keeps its own where that answers the very question."""

import pytest
import torch
from tests.cli.training import ENCODER
from tests.evaluate.toy import SCORED, TASK
from tests.train.cases import LENGTH, SPANS
from tests.train.cases import VISION as PATCHES

from formwright.arch.card import Card
from formwright.nn.build import build
from formwright.nn.hf.imported import Imported
from formwright.nn.settings import Settings
from formwright.nn.task_model import HeadSpec
from formwright.tasks.rows import Splits, TextRows
from formwright.tasks.task import Task
from formwright.train.fit import Training, fresh_model
from formwright.train.hyperparameters import Hyperparameters
from formwright.train.prepare import prepare
from formwright.train.task_head import head_fits, task_model

TRAINING = Training(Hyperparameters(1), length=16)
TWO = HeadSpec("sequence-classification", 2)
NAMES = TASK.labels
_ROWS = TextRows((("good",), ("bad",)), ((1, 0), (1, 1)))
SEVERAL = Task("several", "multi-label-classification", "micro-f1", lambda: Splits(_ROWS, _ROWS, None), labels=NAMES)


def imported(spec: HeadSpec | None, labels: tuple[str, ...] = (), card: Card = ENCODER) -> Imported:
    return Imported(card, Settings(), build(card, head=spec, seed=7, spread="width").state_dict(), spec, labels)


@pytest.mark.parametrize(
    ("task", "spec", "labels", "fits"),
    [
        (TASK, TWO, NAMES, True),
        (TASK, TWO, (), True),
        (TASK, TWO, NAMES[::-1], False),
        (TASK, HeadSpec("sequence-classification", 3), (), False),
        (TASK, HeadSpec("masked-lm"), (), False),
        (TASK, None, (), False),
        (SCORED, HeadSpec("sequence-classification", 1), ("LABEL_0",), True),
        (SCORED, TWO, (), False),
        (SPANS, HeadSpec("span-extraction", 2), (), True),
        (SPANS, HeadSpec("span-extraction"), ("a", "b"), True),
        (SPANS, TWO, (), False),
        (TASK, HeadSpec("sequence-classification", 2, multi_label=True), NAMES, False),
        (SEVERAL, HeadSpec("sequence-classification", 2, multi_label=True), NAMES, True),
        (SEVERAL, TWO, NAMES, False),
    ],
    ids=str,
)
def test_a_head_fits_where_it_answers_the_very_question(task, spec, labels, fits) -> None:
    found = imported(spec, labels)
    assert head_fits(found, task) == fits
    prepared = prepare(task, ENCODER, LENGTH)
    model, fresh = task_model(found, prepared, TRAINING), fresh_model(ENCODER, prepared, TRAINING)
    given = found.weights if spec is not None else {f"transformer.{name}": one for name, one in found.weights.items()}
    for name, tensor in model.state_dict().items():
        source = given if fits or name.startswith("transformer.") else fresh.state_dict()
        assert tensor.equal(source[name]), name


@pytest.mark.parametrize("spec", [None, TWO, HeadSpec("masked-lm")], ids=str)
def test_training_the_model_leaves_what_was_imported_as_it_was(spec: HeadSpec | None) -> None:
    found = imported(spec, NAMES if spec == TWO else ())
    before = {name: tensor.clone() for name, tensor in found.weights.items()}
    model = task_model(found, prepare(TASK, ENCODER, LENGTH), TRAINING)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(1.0)
    assert all(tensor.equal(before[name]) for name, tensor in found.weights.items())


def test_images_are_classified_by_a_head_of_their_own() -> None:
    digits = Task("ten", "image-classification", "accuracy", TASK.splits, labels=tuple("0123456789"))
    assert head_fits(imported(HeadSpec("sequence-classification", 10), digits.labels, PATCHES), digits)
    assert not head_fits(imported(HeadSpec("sequence-classification", 1000), (), PATCHES), digits)
