from dataclasses import replace
from types import SimpleNamespace

from tests.train.cases import ENCODER, few

from formwright.nn.build import build
from formwright.pipeline.shared_start import StartWeights
from formwright.train.fit import head_of


def test_a_head_is_taken_over_where_it_answers_with_the_same_labels() -> None:
    task = few("mini-glue/sst2")
    model = build(ENCODER, head=head_of(task))
    found = SimpleNamespace(model=model, prepared=SimpleNamespace(task=task, tokeniser=None))
    assert StartWeights.of("mine", found, task).weights.keys() == dict(model.named_parameters()).keys()
    others = replace(task, labels=task.labels[::-1])
    body = {name for name, _ in model.named_parameters() if name.startswith("transformer.")}
    assert StartWeights.of("mine", found, others).weights.keys() == body
