"""A head of another package: declared, built, trained, judged and shared, and refused as a model folder."""

from collections.abc import Iterator
from dataclasses import replace
from importlib.metadata import EntryPoint

import pytest
import torch
from tests.train.cases import ENCODER, few
from torch import Tensor, nn

from formwright.arch.card import Card
from formwright.arch.declared import tensors_of
from formwright.arch.heads import HEADS, Head, HeadSpec, check_head
from formwright.arch.tensors import STREAM, Factor, linear
from formwright.arch.tensors import Tensor as Declared
from formwright.core.errors import IllegalInput, UnknownName
from formwright.nn.build import build
from formwright.nn.hf.config_fields import class_name
from formwright.nn.settings import Settings
from formwright.nn.transformer import Output
from formwright.pipeline.task_choice import TrainingChoice
from formwright.space.zoo import load_space
from formwright.supernet.hull import find_hull
from formwright.supernet.library import extracted
from formwright.tasks.kind import KINDS
from formwright.tasks.task import Task
from formwright.tasks.text_kinds import SEQUENCE_CLASSIFICATION
from formwright.train.fit import fit, fresh_model, head_of
from formwright.train.judge import judge
from formwright.train.prepare import prepare

INNER = 6


def _declared(card: Card, spec: HeadSpec) -> Iterator[Declared]:
    inner = Factor(INNER, "head.inner")
    yield from linear("first", (Factor(card.output_width, STREAM),), (inner,))
    yield from linear("last", (inner,), (Factor(spec.outputs, "labels", "whole"),))


class TwoLayers(nn.Module):
    """Classify the mean of all vectors by two linear maps."""

    def __init__(self, card: Card, spec: HeadSpec, _: Settings) -> None:
        super().__init__()
        self.first = nn.Linear(card.output_width, INNER)
        self.last = nn.Linear(INNER, spec.outputs)

    def forward(self, output: Output, _: Tensor | None) -> Tensor:
        return self.last(self.first(output.hidden.mean(1)).relu())


TWO_LAYERS = Head(tensors=_declared, module=f"{__name__}:TwoLayers")
KIND = replace(SEQUENCE_CLASSIFICATION, name="acme-classification", head="two-layers")


@pytest.fixture(autouse=True)
def _installed(monkeypatch: pytest.MonkeyPatch) -> None:
    for registry, name, what in ((HEADS, "two-layers", "TWO_LAYERS"), (KINDS, KIND.name, "KIND")):
        monkeypatch.setitem(registry._entries(), name, EntryPoint(name, f"{__name__}:{what}", registry.group))


def task() -> Task:
    return replace(few("mini-glue/sst2", 60), kind=KIND.name)


def test_it_is_built_as_declared_trained_judged_and_shared() -> None:
    space = load_space("supershaper-nano")
    hull, prepared = find_hull(space), prepare(task(), find_hull(space).largest, 16)
    spec = head_of(prepared.task)
    assert (spec.task, spec.outputs) == ("two-layers", 2)
    training = TrainingChoice(steps=3, batch=8, device="cpu", length=16).make()
    fitted = fit(fresh_model(hull.largest, prepared, training), prepared, training).model
    declared = {name: tensor.shape for name, tensor in tensors_of(hull.largest, spec).items()}
    assert {name: tuple(one.shape) for name, one in fitted.named_parameters()} == declared
    assert {"head.first.weight", "head.last.bias"} <= declared.keys()
    assert 0 <= judge(fitted, prepared, prepared.validation)["accuracy"] <= 1
    small = extracted(fitted, hull.smallest)
    assert isinstance(small.head, TwoLayers)
    assert 0 <= judge(small, prepared, prepared.validation)["accuracy"] <= 1


def test_no_model_folder_can_hold_it() -> None:
    with pytest.raises(IllegalInput, match=r"two-layers.*model class"):
        class_name(find_hull(load_space("supershaper-nano")).largest, "two-layers")


@pytest.mark.parametrize("module", ["", "nowhere:Head", f"{__name__}:Absent"])
def test_a_head_whose_module_is_not_there_is_refused_by_name(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{__name__}.TWO_LAYERS", replace(TWO_LAYERS, module=module))
    with pytest.raises(IllegalInput, match="two-layers"):
        build(find_hull(load_space("supershaper-nano")).smallest, head=HeadSpec("two-layers"))


def test_an_unknown_head_is_refused_with_the_nearest() -> None:
    card = find_hull(load_space("autotinybert-nano")).largest
    with pytest.raises(UnknownName, match="two-layers"):
        check_head(card, HeadSpec("two-layer"))


class Lookup(nn.Module):
    """Score all tokens by the token table."""

    def __init__(self, *_: object) -> None:
        super().__init__()

    def forward(self, hidden: Tensor, table: Tensor) -> Tensor:
        return hidden @ table.T


LOOKUP = Head(tensors=lambda card, spec: iter(()), module=f"{__name__}:Lookup", reads_table=True)


def test_a_head_that_reads_the_token_table_is_called_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(HEADS._entries(), "lookup", EntryPoint("lookup", f"{__name__}:LOOKUP", HEADS.group))
    model, words = build(ENCODER, head=HeadSpec("lookup")).eval(), torch.arange(6).view(2, 3)
    assert torch.equal(model(words), model.transformer(words).hidden @ model.token_table.T)
