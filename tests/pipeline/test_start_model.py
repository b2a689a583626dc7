"""Which head of a model answers the question of a task."""

from dataclasses import replace

import pytest
from tests.cli.training import ENCODER
from tests.evaluate.toy import SCORED, TASK

from formwright.nn.build import build
from formwright.nn.hf.imported import Imported
from formwright.nn.settings import Settings
from formwright.nn.task_model import HeadSpec, TaskModel
from formwright.pipeline.start_model import StartModel
from formwright.tasks.pydoc import MASKED
from formwright.tasks.task import Task
from formwright.train.fit import Training, fresh_model
from formwright.train.hyperparameters import Hyperparameters
from formwright.train.prepare import prepare

TRAINING = Training(Hyperparameters(1), length=16)


@pytest.mark.parametrize(
    ("task", "spec", "labels", "fits"),
    [
        (TASK, HeadSpec("sequence-classification", 2), ("absent", "present"), True),
        (TASK, HeadSpec("sequence-classification", 2), (), True),
        (TASK, HeadSpec("sequence-classification", 2), ("present", "absent"), False),
        (TASK, HeadSpec("sequence-classification", 3), ("a", "b", "c"), False),
        (TASK, HeadSpec("token-classification", 2), ("absent", "present"), False),
        (TASK, None, (), False),
        (SCORED, HeadSpec("sequence-classification", 1), ("LABEL_0",), True),
        (SCORED, HeadSpec("sequence-classification", 2), ("no", "yes"), False),
        (MASKED, HeadSpec("masked-lm", 2), (), True),
        (MASKED, HeadSpec("sequence-classification", 2), (), False),
    ],
    ids=str,
)
def test_the_head_is_kept_where_it_answers_the_very_question(
    task: Task, spec: HeadSpec | None, labels: tuple[str, ...], fits: bool
) -> None:
    model = build(ENCODER, head=spec, seed=7, spread="width")
    imported = Imported(ENCODER, Settings(), model.state_dict(), spec, labels)
    prepared = prepare(task, ENCODER, 16)
    start = StartModel("mine", ENCODER, task, prepared.tokeniser, Settings(), imported)
    assert start.prepared(16) is prepared
    found = start.model(prepared, TRAINING).state_dict()
    fresh = fresh_model(ENCODER, prepared, TRAINING).state_dict()
    given = (
        model.state_dict()
        if isinstance(model, TaskModel)
        else {f"transformer.{k}": v for k, v in model.state_dict().items()}
    )
    for name, tensor in found.items():
        source = given if fits or name.startswith("transformer.") else fresh
        assert tensor.equal(source[name]), name
    assert not found["transformer.encoder.embedding.tokens.weight"].equal(
        fresh["transformer.encoder.embedding.tokens.weight"]
    )


def test_pretrained_weights_go_below_a_fresh_head() -> None:
    start = StartModel("mine", ENCODER, TASK, None, Settings())
    assert start.from_scratch
    assert not replace(start, imported=Imported(ENCODER, Settings(), {})).from_scratch
    weights = build(ENCODER, seed=9).state_dict()
    found = start.model(start.prepared(16), TRAINING, weights).state_dict()
    fresh = start.model(start.prepared(16), TRAINING).state_dict()
    for name, tensor in found.items():
        source = weights[name.removeprefix("transformer.")] if name.startswith("transformer.") else fresh[name]
        assert tensor.equal(source), name
