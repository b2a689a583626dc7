from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from tests.train.cases import ENCODER, few

from formwright.arch.card import Card
from formwright.arch.embeddings import TokenEmbedding
from formwright.arch.layers import Block, Stack
from formwright.arch.ops import Attention
from formwright.core.errors import IllegalInput
from formwright.nn.build import build
from formwright.pipeline import shared_start
from formwright.pipeline.shared_start import StartWeights
from formwright.tasks.rows import PlainText
from formwright.tasks.tokeniser import train_wordpiece
from formwright.train.fit import head_of


def test_a_head_is_taken_over_where_it_answers_with_the_same_labels() -> None:
    task = few("mini-glue/sst2")
    model = build(ENCODER, head=head_of(task))
    found = SimpleNamespace(model=model, prepared=SimpleNamespace(task=task, tokeniser=None))
    assert StartWeights.of("mine", found, task).weights.keys() == dict(model.named_parameters()).keys()
    others = replace(task, labels=task.labels[::-1])
    body = {name for name, _ in model.named_parameters() if name.startswith("transformer.")}
    assert StartWeights.of("mine", found, others).weights.keys() == body


def test_a_design_has_place_for_all_tokens_of_a_model_and_no_fewer() -> None:
    read = train_wordpiece(PlainText(("some words of a text",)), 60)
    start = StartWeights("the model", {}, {}, read)
    layers = (Block(8, Attention(1, 8), (8,)),)
    for words in (read.size, read.size + 1):
        start.check(Card(encoder=Stack(TokenEmbedding(words, 8, length=4), layers)))
    with pytest.raises(IllegalInput, match="larger vocabulary"):
        start.check(Card(encoder=Stack(TokenEmbedding(read.size - 1, 8, length=4), layers)))


def test_weights_of_a_model_without_a_head_are_found_by_the_names_of_one_with_a_head(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bare = SimpleNamespace(head=None, card=ENCODER, weights=dict(build(ENCODER).named_parameters()))
    monkeypatch.setattr(shared_start, "read_weights", lambda *_: ("bare", bare, None))
    monkeypatch.setattr(shared_start, "head_fits", lambda *_: False)
    found = StartWeights.read("a folder", few("mini-glue/sst2"))
    assert found.weights.keys() == {f"transformer.{name}" for name in bare.weights}
    assert found.weights.keys() <= found.tensors.keys()


def test_maps_that_the_other_model_has_are_not_overwritten_in_a_library() -> None:
    known, new = "transformer.encoder.projections.1.weight", "transformer.encoder.projections.2.weight"
    own = {f"{name}@map": torch.full((2, 2), 3.0) for name in (known, new)}
    assert shared_start._pass_through(own, {known: torch.zeros(2, 2)}) == 1
    assert own[f"{known}@map"].tolist() == [[3, 3], [3, 3]]
    assert own[f"{new}@map"].tolist() == [[1, 0], [0, 1]]
