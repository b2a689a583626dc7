"""Lessons from within, on a small encoder: what they compare, what they leave alone, and what they keep."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.supernet.lesson_runs import (
    HEAD,
    HULL,
    KIND,
    LARGEST,
    NARROW,
    SMALLEST,
    batch,
    bound,
    losses,
    outputs,
    translation,
)
from tests.supernet.small import model
from torch.nn import functional as F

from formwright.arch.card import Card
from formwright.arch.embeddings import TokenEmbedding
from formwright.arch.heads import HeadSpec
from formwright.arch.layers import Block, Stack
from formwright.arch.ops import Attention
from formwright.core.codec import range_faults
from formwright.core.errors import IllegalInput
from formwright.core.options import PartReader, PartWriter
from formwright.core.rng import derive
from formwright.space.zoo import load_space
from formwright.space.zoo.supershaper import SMALL as SHAPES
from formwright.supernet.hull import Hull, find_hull, sampled_cards
from formwright.supernet.inner_lessons import Anchor, AttentionRelations, HiddenStates, evenly
from formwright.supernet.lessons import LESSONS, Distil, Labels, Lesson, LessonContext, TwoStage
from formwright.supernet.library import LibraryWeights, library_of
from formwright.supernet.network import StepTrackingStream, SuperNetwork
from formwright.supernet.rules import Largest, Phases, ProgressiveShrinking, Uniform
from formwright.train.hyperparameters import Hyperparameters
from formwright.train.loop import Saving, train
from formwright.train.losses import distillation, loss_of
from formwright.train.streams import Batch


@pytest.mark.parametrize(
    "lesson",
    [HiddenStates(0.1, 0.5, hidden=2.0), AttentionRelations(heads=2), Anchor(Distil(), 0.2, 5), TwoStage(Labels())],
    ids=lambda lesson: lesson.NAME,
)
def test_lessons_are_parts(lesson: Lesson) -> None:
    reader = PartReader()
    assert reader.finished(reader.read(Lesson, PartWriter().value(lesson)), "lesson") == lesson
    assert LESSONS.get(lesson.NAME) is type(lesson)


@pytest.mark.parametrize(
    ("student", "teacher", "pairs"),
    [
        (3, 3, [(0, 0), (1, 1), (2, 2)]),
        (2, 6, [(0, 2), (1, 5)]),
        (4, 12, [(0, 2), (1, 5), (2, 8), (3, 11)]),
        (6, 2, [(2, 0), (5, 1)]),
        (1, 5, [(0, 4)]),
    ],
)
def test_layers_are_mapped_evenly_and_the_last_to_the_last(student: int, teacher: int, pairs: list[Any]) -> None:
    assert evenly(student, teacher) == pairs


def test_hidden_states_and_scores_of_the_teacher_are_learned() -> None:
    teacher, rows = model(2), batch()
    network, loss = bound(HiddenStates(labels=0.3, scores=0.7, hidden=2.0), [SMALLEST, LARGEST], teacher)
    assert not any(name.startswith("hidden_map") for name, _ in network.named_parameters())  # all have the same width
    found = losses(network.eval(), loss, rows)
    for one, small in zip(found, (SMALLEST, LARGEST), strict=True):
        own, heard = network.extracted(small), teacher
        mine, its = (each.transformer(rows.inputs, rows.mask).layers for each in (own, heard))
        squares = [(a - b).square().mean(-1)[rows.mask].mean() for a, b in zip(mine, its, strict=True)]
        scores = own(rows.inputs, rows.mask)
        rest = 0.3 * loss_of(KIND)(scores, rows) + 0.7 * distillation(scores, teacher(rows.inputs, rows.mask), 1.0)
        assert torch.allclose(one, (2 * torch.stack(squares).mean() + rest) / 2, rtol=1e-4)


def test_where_widths_differ_a_map_is_trained_along_and_not_delivered() -> None:
    hull = Hull(HULL.space, LARGEST, NARROW)
    network, loss = bound(HiddenStates(), [NARROW], model(2), hull=hull)
    assert network.hidden_map.shape == (16, 16)
    before = network.hidden_map.detach().clone()

    class Rows:
        def batch(self, step: int) -> Batch:
            return batch(step)

    train(network, Rows(), loss, Hyperparameters(2, 8, 1e-2, weight_decay=0.0))
    changed = (network.hidden_map != before).any(0)
    assert changed[:6].all()
    assert not changed[6:].any()  # no design of the step is as wide
    assert "hidden_map" not in dict(network.extracted(NARROW).named_parameters())


class ManyRows:
    def batch(self, step: int) -> Batch:
        return batch(step)


def test_two_stages_of_hidden_states_have_a_map_each_and_resume_exactly(tmp_path: Path) -> None:
    wide = Card(encoder=Stack(TokenEmbedding(30, 40, length=12), (Block(40, Attention(4, 10)),)))  # the first teacher
    hull = Hull(HULL.space, LARGEST, NARROW)

    def trained(folder: Path | None, until: int | None = None) -> tuple[SuperNetwork, list[float]]:
        lesson = TwoStage(HiddenStates(), HiddenStates(), share=0.5)
        network, loss = bound(lesson, [LARGEST, NARROW], model(2, of=wide), hull=hull)
        stream = StepTrackingStream(ManyRows(), network)
        saving = None if folder is None else Saving(folder, 1)
        return network, train(network, stream, loss, Hyperparameters(4, 8, 1e-2), saving, until=until)

    network, whole = trained(None)
    maps = [network.get_parameter(name) for name in ("hidden_map", "hidden_map_1")]
    assert [one.shape for one in maps] == [(40, 16), (16, 16)]
    assert all((one != torch.eye(*one.shape)).any() for one in maps)
    trained(tmp_path, until=3)
    again, losses = trained(tmp_path)
    assert losses == whole
    for name, weight in network.named_parameters():
        assert torch.equal(weight, again.get_parameter(name)), name


def test_the_width_of_what_leaves_the_stack_counts() -> None:
    space = replace(SHAPES, widths=(24, 48, 72)).space("shapes", "narrower than their output,")
    hull = find_hull(space)
    assert {layer.output_width for layer in hull.largest.encoder.layers} == {72}
    assert hull.largest.output_width == 96
    own, taught = (model(seed, of=hull.largest) for seed in (1, 2))
    network = SuperNetwork(own, lambda *_: [hull.smallest, hull.largest], taught)
    loss = HiddenStates().bind(KIND, LessonContext(network, hull, 4))
    found = losses(network, loss, batch())
    sum(found).backward()
    assert network.get_parameter("hidden_map").shape == (96, 96)
    assert network.get_parameter("hidden_map").grad[:, 72:].abs().sum() > 0  # of what leaves the stack


def test_a_narrower_layer_of_the_teacher_is_learned_by_the_leading_numbers_of_the_map() -> None:
    taught = replace(SHAPES, widths=(8, 16)).space("shapes", "of two widths,")
    uneven = next(
        card for card in sampled_cards(taught, 99) if len({layer.output_width for layer in card.encoder.layers}) == 2
    )
    hull = Hull(HULL.space, LARGEST, NARROW)
    network, loss = bound(HiddenStates(scores=0.0), [NARROW], model(2, of=uneven), hull=hull)
    with torch.no_grad():
        network.hidden_map.copy_(torch.randn(network.hidden_map.shape, generator=torch.Generator().manual_seed(0)))
    rows = batch()
    (found,) = losses(network.eval(), loss, rows)
    own, heard = network.extracted(NARROW), model(2, of=uneven)
    mine, its = (one.transformer(rows.inputs, rows.mask).layers for one in (own, heard))
    squares = [
        (mine[here] @ network.hidden_map[: its[there].shape[-1], :6].T - its[there])[rows.mask].square().mean()
        for here, there in evenly(len(mine), len(its))
    ]
    assert len({one.shape[-1] for one in its}) > 1
    assert torch.allclose(found, torch.stack(squares).mean(), rtol=1e-4)


def test_hidden_states_of_both_stacks_of_a_translator_are_learned() -> None:
    hat, rows, kind = load_space("hat-nano"), translation(), "seq2seq-lm"
    hull = find_hull(hat)
    small = next(
        card
        for card in sampled_cards(hat, 99)
        if len(card.decoder.layers) == 2 and (card.encoder.output_width, card.decoder.output_width) == (128, 96)
    )
    known = [model(seed, of=hull.largest, spec=HeadSpec(kind)) for seed in (1, 2)]
    network = SuperNetwork(known[0], lambda *_: [small], known[1]).eval()
    loss = HiddenStates(scores=0.0).bind(kind, LessonContext(network, hull, 4))
    (found,) = loss(network(rows.inputs), rows)
    assert [network.get_parameter(name).shape for name in ("hidden_map", "hidden_map_1")] == [(128, 128)] * 2
    mine, its = outputs((network.extracted(small), known[1]), rows)
    squares = [
        (F.pad(a, (0, b.shape[-1] - a.shape[-1])) - b)[real].square().mean()  # the map begins as the identity
        for real, states, aims in ((rows.mask, mine.memory, its.memory), (rows.targets_mask, mine.layers, its.layers))
        for a, b in ((states[here], aims[there]) for here, there in evenly(len(states), len(aims)))
    ]
    assert len(squares) == 3 + 2
    assert torch.allclose(found, torch.stack(squares).mean(), rtol=1e-4)


def test_designs_between_the_ends_of_a_space_of_kinds_may_have_another_width() -> None:
    nano = load_space("flexibert-nano")
    wide = find_hull(nano).largest
    cards = [nano.card(nano.sample(derive(turn), "gene")) for turn in range(30)]
    narrow = next(card for card in cards if {layer.output_width for layer in card.stacks[-1].layers} == {32})
    network = SuperNetwork(
        LibraryWeights.fresh(library_of(nano, HEAD), HEAD, None, 3, "width"), lambda *_: [wide, narrow]
    )
    loss = HiddenStates().bind(KIND, LessonContext(network, Hull(nano, wide, wide, ordered=False), 4))
    assert all(torch.isfinite(one) for one in losses(network, loss, batch()))


def test_without_a_teacher_the_largest_design_teaches_and_learns_from_labels() -> None:
    rows = batch()
    network, loss = bound(HiddenStates(scores=0.0), [LARGEST, SMALLEST])
    first, second = losses(network.eval(), loss, rows)
    assert torch.allclose(first, loss_of(KIND)(network.model(rows.inputs, rows.mask), rows) / 2)
    layers = [network.extracted(one).transformer(rows.inputs, rows.mask).layers for one in (SMALLEST, LARGEST)]
    squares = [(a - b).square().mean(-1)[rows.mask].mean() for a, b in zip(*layers, strict=True)]
    assert torch.allclose(second, torch.stack(squares).mean() / 2, rtol=1e-4)


def test_the_second_stage_is_taught_by_the_largest_design_as_it_was_then() -> None:
    rows = batch()
    network, loss = bound(TwoStage(Labels(), Distil(0.0, 1.0), share=0.5), [SMALLEST])
    network.eval().step = 1
    (first,) = losses(network, loss, rows)
    assert torch.allclose(first, loss_of(KIND)(network.answer(SMALLEST, rows.inputs, rows.mask), rows))
    with torch.no_grad():
        network.model.head.output.bias.add_(torch.tensor([1.0, -1.0]))
    network.step = 2
    wanted = network.model(rows.inputs, rows.mask).detach()
    (second,) = losses(network, loss, rows)
    scores = network.answer(SMALLEST, rows.inputs, rows.mask)
    assert torch.allclose(second, distillation(scores, wanted, 1.0), rtol=1e-4)
    with torch.no_grad():
        network.model.head.output.bias.add_(torch.tensor([1.0, -1.0]))
    network.step = 3
    (third,) = losses(network, loss, rows)  # the teacher stays what it was
    scores = network.answer(SMALLEST, rows.inputs, rows.mask)
    assert torch.allclose(third, distillation(scores, wanted, 1.0), rtol=1e-4)
    assert not any(weight.requires_grad for weight in network.frozen.parameters())


def test_the_second_stage_of_a_library_is_taught_by_its_weights_of_then() -> None:
    nano = load_space("flexibert-nano")
    hull = find_hull(nano)
    network = SuperNetwork(
        LibraryWeights.fresh(library_of(nano, HEAD), HEAD, None, 3, "width"), lambda *_: [hull.smallest]
    )
    loss = TwoStage(Labels(), Distil(0.0, 1.0), share=0.5).bind(KIND, LessonContext(network, hull, 4))
    with torch.no_grad():
        for weight in network.model.parameters():
            weight.add_(0.01)
    network.step = 2
    losses(network, loss, batch())
    both = (network.frozen.parameters(), network.model.parameters())
    assert all(torch.equal(kept, weight) for kept, weight in zip(*both, strict=True))


def test_both_stages_change_with_the_phases_of_the_rule() -> None:
    lesson, rules = TwoStage(Labels(), share=1 / 3), (Largest(), Uniform())
    lesson.check(Phases(rules, (1, 2)), has_teacher=False)
    lesson.check(Uniform(), has_teacher=False)
    lesson.check(ProgressiveShrinking(largest=1 / 3), has_teacher=False)
    for rule in (Phases(rules, (1, 1)), ProgressiveShrinking(largest=0.25)):
        with pytest.raises(IllegalInput, match=r"0\.333"):
            lesson.check(rule, has_teacher=False)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Anchor(HiddenStates()),
        lambda: Anchor(TwoStage(Labels(), Distil())),  # whose second teacher the anchor does not ask
        lambda: TwoStage(TwoStage()),
        lambda: TwoStage(Anchor()),
    ],
)
def test_lessons_that_do_not_go_together_are_refused(make: Any) -> None:
    with pytest.raises(IllegalInput):
        make()


@pytest.mark.parametrize(
    ("lesson", "wrong"),
    [(HiddenStates(hidden=-1.0), "hidden"), (AttentionRelations(heads=0), "heads"), (Anchor(every=0), "every")],
)
def test_options_out_of_range_are_found(lesson: Lesson, wrong: str) -> None:
    assert [fault.where for fault in range_faults(lesson, "lesson")] == [f"lesson.{wrong}"]


def test_losses_are_followed_back_one_by_one_where_the_largest_design_teaches_its_layers_and_maps() -> None:
    """Nothing flows back from what it teaches: its graph is gone by then."""
    for lesson in (HiddenStates(), AttentionRelations(heads=2)):
        network, loss = bound(lesson, [LARGEST, SMALLEST])
        rows = batch()
        for one in loss(network(rows.inputs), rows):
            network.zero_grad()
            one.backward()
        last = network.model.transformer.encoder.layers[-1].feed_forward.maps[0].weight.grad
        assert last[:8].any()
        assert not last[8:].any()  # channels that the smallest design does not read


def test_a_lesson_of_two_stages_reads_what_either_of_them_reads() -> None:
    assert {"maps", "layers"} == TwoStage(AttentionRelations(), HiddenStates()).SIGNALS
    assert {"layers"} == TwoStage(Labels(), HiddenStates()).SIGNALS
    with pytest.raises(IllegalInput, match="two-stage"):
        Anchor(TwoStage(Labels(), HiddenStates()))
