"""Where shared weights start: with those of a folder, a stage, or a model of another size."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from tests.pipeline.shared_runs import MIXED, Lines, assert_close, made, stage
from tests.train.cases import ENCODER, few

from formwright.arch.card import Card
from formwright.arch.declared import tensors_of
from formwright.arch.embeddings import TokenEmbedding
from formwright.arch.heads import HeadSpec
from formwright.arch.layers import Block, Stack
from formwright.arch.ops import Attention
from formwright.core.errors import IllegalInput
from formwright.nn.build import build
from formwright.pipeline import shared_start
from formwright.pipeline.pipeline import Pipeline
from formwright.pipeline.run import PipelineRun
from formwright.pipeline.runner import run_pipeline
from formwright.pipeline.shared_start import StartWeights
from formwright.space.combinators import Choice
from formwright.space.space import Space
from formwright.space.zoo import load_space
from formwright.supernet.hull import find_hull
from formwright.supernet.library import take_over
from formwright.supernet.rules import Largest
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


@pytest.mark.parametrize(("own", "known"), [(9, 6), (6, 9)])
def test_scores_of_the_tokens_that_both_know_are_taken_over_whole(own: int, known: int) -> None:
    layers = (Block(8, Attention(1, 8), (8,)),)
    cards = [Card(encoder=Stack(TokenEmbedding(words, 8, length=4), layers)) for words in (own, known)]
    mine, its = (tensors_of(card, HeadSpec("masked-lm")) for card in cards)
    weights = {name: torch.zeros(tensor.shape) for name, tensor in mine.items()}
    given = {name: torch.ones(tensor.shape) for name, tensor in its.items()}
    rows = shared_start._by_rows(mine), shared_start._by_rows(its)
    assert take_over(weights, rows[0], given, rows[1]) == len(mine)
    for name in ("head.bias", "transformer.encoder.embedding.tokens.weight"):
        assert weights[name].view(own, -1)[:, 0].tolist() == [1] * min(own, known) + [0] * max(own - known, 0)


def test_maps_that_the_other_model_has_are_not_overwritten_in_a_library() -> None:
    known, new = "transformer.encoder.projections.1.weight", "transformer.encoder.projections.2.weight"
    own = {f"{name}@map": torch.full((2, 2), 3.0) for name in (known, new)}
    assert shared_start._pass_through(own, {known: torch.zeros(2, 2)}) == 1
    assert own[f"{known}@map"].tolist() == [[3, 3], [3, 3]]
    assert own[f"{new}@map"].tolist() == [[1, 0], [0, 1]]


def started(pipeline: Pipeline, out: Path) -> tuple[Any, str]:
    """Train, and give what the last stage made and what was told about its start."""
    display = Lines()
    run = run_pipeline(PipelineRun(pipeline, out, display=display))
    (told,) = [line for line in display.lines if "start with weights" in line]
    return run.artifact(run.pipeline.stages[-1]), told


def test_weights_are_those_of_a_folder_or_a_stage(tmp_path: Path) -> None:
    first = stage(rule=Largest(), seed=7)
    run = made(Pipeline(first), tmp_path / "first")
    known, folder = run.artifact(run.pipeline.stages[0]), tmp_path / "first" / "super-network"
    still = stage(start=str(folder), learning_rate=1e-9, steps=1)
    for pipeline in (Pipeline(still), Pipeline(first, replace(still, start=first))):
        found, told = started(pipeline, tmp_path / str(len(pipeline.stages)))
        assert_close(found.model, known.model)
        assert told.startswith(f"{len(dict(known.model.named_parameters()))} of ")


def test_a_library_starts_from_a_library_and_from_a_model_with_its_tokens(tmp_path: Path) -> None:
    run = made(Pipeline(MIXED), tmp_path / "first")
    known, folder = run.artifact(run.pipeline.stages[0]), tmp_path / "first" / "super-network"
    still = replace(MIXED, start=str(folder), seed=3, learning_rate=1e-9, steps=1)
    found, _ = started(Pipeline(still), tmp_path / "folder")
    assert_close(found.model, known.model)
    assert found.prepared.tokeniser.digest == known.prepared.tokeniser.digest
    found, told = started(Pipeline(MIXED, replace(still, start=MIXED)), tmp_path / "stage")
    assert_close(found.library, known.library)
    assert told.startswith(f"{len(known.library.library.tensors)} of {len(known.library.library.tensors)} ")


def test_a_smaller_teacher_gives_the_part_that_it_has(tmp_path: Path) -> None:
    smallest = find_hull(load_space("autoformer-nano")).smallest
    first = replace(stage(rule=Largest(), steps=1), space=Space("small", Choice((1,)), lambda _: smallest))
    found, told = started(Pipeline(first, stage(teacher=first, learning_rate=1e-9, steps=1, seed=2)), tmp_path)
    run = PipelineRun(Pipeline(first), tmp_path / "again")
    known = run_pipeline(run).artifact(run.pipeline.stages[0])
    assert_close(found.extracted(smallest), known.model)
    assert int(told.split()[0]) == len(dict(known.model.named_parameters()))


def test_a_start_that_cannot_be_is_refused(tmp_path: Path) -> None:
    run = made(Pipeline(MIXED), tmp_path / "first")
    folder = str(tmp_path / "first" / "super-network")
    assert run.artifact(run.pipeline.stages[0]).model is not None
    with pytest.raises(IllegalInput, match="digits"):  # a model of text
        made(Pipeline(stage(start=folder)), tmp_path / "pictures")
    with pytest.raises(IllegalInput, match="not both"):
        stage(start=folder, teacher=stage())
    with pytest.raises(IllegalInput, match="nothing-there"):
        made(Pipeline(stage(start=str(tmp_path / "nothing-there"))), tmp_path / "nothing")
    assert not (tmp_path / "pictures").exists()
