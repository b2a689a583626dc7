"""Lessons from within, on a small encoder: what they compare, what they leave alone, and what they keep."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.supernet.small import card, model, sentences
from torch.nn import functional as F

from formwright.arch.card import Card
from formwright.arch.embeddings import TokenEmbedding
from formwright.arch.heads import HeadSpec
from formwright.arch.layers import Block, Stack
from formwright.arch.ops import Attention, Identity, Operation, OpGraph, SeparableConvolution
from formwright.core.codec import range_faults
from formwright.core.errors import IllegalInput
from formwright.core.options import PartReader, PartWriter
from formwright.core.rng import derive
from formwright.nn.build import kept_skeleton
from formwright.nn.inherit import Reading
from formwright.nn.task_model import TaskModel
from formwright.nn.transformer import Output
from formwright.space.elastic import elastic
from formwright.space.zoo import load_space
from formwright.space.zoo.supershaper import SMALL as SHAPES
from formwright.supernet.automatic import sub_network
from formwright.supernet.hull import Hull, find_hull, sampled_cards
from formwright.supernet.inner_lessons import Anchor, AttentionRelations, HiddenStates, evenly
from formwright.supernet.lessons import LESSONS, Answer, Distil, Labels, Lesson, LessonContext, TwoStage
from formwright.supernet.library import LibraryWeights, library_of
from formwright.supernet.network import StepTrackingStream, SuperNetwork
from formwright.supernet.rules import Largest, Phases, ProgressiveShrinking, SplitBatch, Uniform
from formwright.tasks.encode import IGNORED
from formwright.train.hyperparameters import Hyperparameters
from formwright.train.loop import Saving, inputs_of, train
from formwright.train.losses import distillation, loss_of
from formwright.train.streams import Batch

KIND = "sequence-classification"
HEAD = HeadSpec(KIND, 2)
LARGEST, SMALLEST = card(), sub_network(card(), ((1, 8),) * 3)
NARROW = sub_network(card(), ((1, 8),) * 3, 6)
HULL = Hull(elastic(card(), (1, 2, 4), (8, 16, 24)), LARGEST, SMALLEST)


def batch(seed: int = 0) -> Batch:
    tokens, mask = sentences(8, seed)
    return Batch(tokens, tokens[:, 0] % 2, mask)


def bound(
    lesson: Lesson, cards: list[Card], teacher: Any = None, steps: int = 4, hull: Hull = HULL
) -> tuple[SuperNetwork, Any]:
    network = SuperNetwork(model(1), lambda rng, step: cards, teacher)
    return network, lesson.bind(KIND, LessonContext(network, hull, steps))


def losses(network: SuperNetwork, loss: Any, rows: Batch) -> list[torch.Tensor]:
    return list(loss(network(rows.inputs), rows))


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


def translation() -> Batch:
    (tokens, mask), (targets, targets_mask) = sentences(6, 1), sentences(6, 2)
    return Batch(tokens, targets, mask, targets=targets, targets_mask=targets_mask)


def outputs(models: Iterable[TaskModel], rows: Batch) -> Iterator[Output]:
    return (one.transformer(rows.inputs, rows.mask, None, rows.targets, rows.targets_mask) for one in models)


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


def test_an_anchor_aligns_both_stacks_of_a_translator() -> None:
    hat, rows, kind = load_space("hat-nano"), translation(), "seq2seq-lm"
    hull = find_hull(hat)
    cards = [hull.largest, hull.smallest]
    network = SuperNetwork(model(1, of=hull.largest, spec=HeadSpec(kind)), lambda _, step: [cards[step]]).eval()
    loss = Anchor(weight=0.5, every=99).bind(kind, LessonContext(network, hull, 4))
    for network.step in range(2):
        (found,) = loss(network(rows.inputs), rows)
    mine, its = outputs((network.extracted(one) for one in reversed(cards)), rows)
    squares = [
        F.mse_loss(a[real], b[..., : a.shape[-1]][real])
        for real, states, aims in ((rows.mask, mine.memory, its.memory), (rows.targets_mask, mine.layers, its.layers))
        for a, b in zip(states, aims, strict=False)
    ]
    assert len(squares) == 3 + 1
    labels = loss_of(kind)(network.answer(hull.smallest, *inputs_of(rows)), rows)
    assert torch.allclose(found, labels + 0.5 * torch.stack(squares).mean(), rtol=1e-4)


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


def test_relations_do_not_depend_on_widths_and_ignore_padding() -> None:
    lesson, rows = AttentionRelations(heads=2, scores=0.0), batch()
    generator = torch.Generator().manual_seed(0)
    wide = torch.randn(8, 9, 12, generator=generator)
    said = Answer(torch.zeros(8, 2), maps=(wide, wide, wide))
    assert float(lesson._compare(said, said, rows)) == pytest.approx(0.0, abs=1e-6)
    other = torch.randn(8, 9, 6, generator=generator)
    narrow = Answer(torch.zeros(8, 2), maps=(other, other, other))
    distance = float(lesson._compare(narrow, said, rows))
    assert distance > 0
    other[~rows.mask] = 100.0
    assert float(lesson._compare(narrow, said, rows)) == pytest.approx(distance)
    one = torch.stack([part @ part.T / 3**0.5 for part in other[0, : int(rows.mask[0].sum())].split(3, -1)])
    mask = rows.mask[:1]
    found = lesson._relation(other[:1], mask)[0][:, mask[0]][..., mask[0]]
    assert torch.allclose(found, one.log_softmax(-1), atol=1e-5)


def test_a_distance_of_relations_is_the_divergence_of_the_teachers_from_the_students() -> None:
    lesson, rows = AttentionRelations(heads=2, relations=0.5), batch()
    generator = torch.Generator().manual_seed(0)
    mine, its = (Answer(torch.zeros(8, 2), maps=(torch.randn(8, 9, width, generator=generator),)) for width in (6, 12))
    found = float(lesson._compare(mine, its, rows))
    each = []
    for row, real in enumerate(rows.mask.bool()):
        student, aim = (lesson._relation(one.maps[0][row, real][None], None) for one in (mine, its))
        each += (aim.exp() * (aim - student)).sum(-1).mean(1).flatten().tolist()  # KL(teacher, student) of each token
    assert found == pytest.approx(0.5 * sum(each) / len(each), rel=1e-4)


def test_relations_of_a_translator_are_those_of_the_real_words_that_it_writes() -> None:
    lesson, rows = AttentionRelations(heads=2), translation()
    assert not torch.equal(rows.mask, rows.targets_mask)
    generator = torch.Generator().manual_seed(0)
    mine, its = (torch.randn(*rows.targets.shape, 6, generator=generator) for _ in range(2))
    said = [Answer(torch.zeros(6, 2), maps=(one,)) for one in (mine, its)]
    distance = lesson._compare(said[0], said[1], rows)
    mine[~rows.targets_mask] = 100.0
    assert torch.allclose(lesson._compare(said[0], said[1], rows), distance)


def test_maps_are_the_queries_keys_and_values_of_the_last_attention() -> None:
    rows = batch()
    network, loss = bound(AttentionRelations(heads=2), [SMALLEST], model(2))
    assert all(torch.isfinite(one) for one in losses(network, loss, rows))
    said = network.answer_now(SMALLEST, rows)
    own = network.extracted(SMALLEST)
    before_last = own.transformer(rows.inputs, rows.mask).layers[-2]
    packed = own.transformer.encoder.layers[-1].mixer.query_key_value(before_last)
    for place, found in enumerate(said.maps):  # one head of four numbers
        assert torch.allclose(found, packed[..., 4 * place : 4 * place + 4], atol=1e-5)
    with pytest.raises(IllegalInput, match="heads"):
        AttentionRelations(heads=5)._compare(said, said, rows)
    with pytest.raises(IllegalInput, match="no attention"):
        AttentionRelations()._compare(said, Answer(said.scores), rows)


FORMULA = ("add", ("matmul", ("softmax", ("matmul", "Q", ("transpose", "K"))), "V"), "P")
WITHOUT_KEYS = ("add", "Q", ("add", "V", "P"))


def mixed(*mixers: Operation) -> Card:
    layers = tuple(Block(16, mixer, (8,)) for mixer in mixers)
    return replace(LARGEST, encoder=replace(LARGEST.encoder, layers=layers))


def test_a_formula_tells_its_queries_keys_and_values_too() -> None:
    rows, one = batch(), mixed(Attention(2, 4), OpGraph(2, 4, FORMULA), OpGraph(2, 4, WITHOUT_KEYS), Identity())
    whole = SuperNetwork(model(1, of=one), lambda rng, step: [one])
    whole.signals |= AttentionRelations.SIGNALS
    said = whole.answer_now(one, rows)
    own = whole.extracted(one).transformer
    below = own(rows.inputs, rows.mask).layers[0]
    inputs = own.encoder.layers[1].mixer.inputs  # the last one that has all three
    assert len(said.maps) == 3
    for letter, found in zip("QKV", said.maps, strict=True):
        assert torch.allclose(found, inputs[letter](below), atol=1e-6)
    assert not any(module._forward_hooks for module in kept_skeleton(one, whole.model.settings, HEAD).modules())


@pytest.mark.parametrize(
    "mixer", [Identity(), SeparableConvolution(3), OpGraph(2, 4, WITHOUT_KEYS)], ids=lambda one: one.TYPE
)
def test_relations_are_refused_where_a_design_has_none(mixer: Operation) -> None:
    without, space = mixed(mixer, mixer), HULL.space
    with pytest.raises(IllegalInput, match="no attention with queries, keys and values"):
        bound(AttentionRelations(), [SMALLEST], model(2), hull=Hull(space, LARGEST, without))
    network, loss = bound(AttentionRelations(), [without], model(2))
    network.model = model(1, of=without)
    with pytest.raises(IllegalInput, match="no attention with queries, keys and values"):
        losses(network, loss, batch())
    bound(HiddenStates(), [without], model(2), hull=Hull(space, LARGEST, without))


def test_relations_are_refused_in_a_space_of_kinds_some_of_which_have_none() -> None:
    nano = load_space("flexibert-nano")
    attention = (card for card in sampled_cards(nano, 50) if type(card.encoder.layers[-1].mixer) is Attention)
    wide = next(attention)
    with pytest.raises(IllegalInput, match="no attention with queries, keys and values"):
        bound(AttentionRelations(), [wide], model(2), hull=Hull(nano, wide, wide, ordered=False))


@pytest.mark.parametrize(
    ("hull", "teacher"),
    [
        (HULL, mixed(Identity())),  # a teacher without attention
        (Hull(HULL.space, LARGEST, mixed(Identity())), None),
        (HULL, mixed(Attention(1, 5))),  # of five channels, which are not six
        (Hull(HULL.space, LARGEST, mixed(Attention(1, 5))), None),
    ],
)
@pytest.mark.parametrize("make", [lambda one: one, lambda one: TwoStage(one, Labels())], ids=["alone", "two stages"])
def test_designs_without_relations_are_refused_before_anything_is_trained(
    make: Any, hull: Hull, teacher: Card | None
) -> None:
    make(AttentionRelations(heads=4)).check_designs(HULL, LARGEST)
    with pytest.raises(IllegalInput):
        make(AttentionRelations(heads=6)).check_designs(hull, teacher)


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


def test_an_anchor_is_replaced_by_a_better_design_only() -> None:
    rows, order = batch(), [SMALLEST, LARGEST]
    network = SuperNetwork(model(1), lambda rng, step: [order[step % 2]])
    loss = Anchor(weight=0.5, every=1).bind(KIND, LessonContext(network, HULL, 4, rows))
    network.eval()
    judged = [loss_of(KIND)(network.answer(one, rows.inputs, rows.mask), rows).item() for one in order]
    best = order[judged.index(min(judged))]
    for step in range(4):
        network.step = step
        (found,) = losses(network, loss, rows)
        own = order[step % 2]
        anchor = own if step == 0 else best  # the first one has no rival
        layers = [network.extracted(one).transformer(rows.inputs, rows.mask).layers for one in (own, anchor)]
        real = rows.mask.bool()
        apart = torch.stack([F.mse_loss(a[real], b[real]) for a, b in zip(*layers, strict=True)]).mean()
        assert torch.allclose(found, loss_of(KIND)(network.answer(own, rows.inputs, rows.mask), rows) + 0.5 * apart)
    assert int(network.anchor[0]) == order.index(best)


def test_every_design_of_a_step_may_become_the_anchor() -> None:
    rows, cards = batch(), [LARGEST, sub_network(card(), ((2, 16),) * 3), SMALLEST]
    for seed in range(1, 9):
        for order in (cards, cards[::-1]):
            network = SuperNetwork(model(seed), lambda rng, step, order=order: order).eval()
            loss = Anchor(every=1).bind(KIND, LessonContext(network, HULL, 4, rows))
            losses(network, loss, rows)
            judged = [float(loss_of(KIND)(network.answer_now(one, rows).scores, rows)) for one in order]
            assert network.anchor.tolist() == [0, network.draw, judged.index(min(judged))]


def test_layers_are_aligned_that_are_read_from_the_same_place() -> None:
    deep, rows = card(4), batch()
    cards = [card(3), card(2)]  # of four layers the first reads 0, 1 and 2, and the second 0 and 2
    for reading, pairs in ((Reading("even"), [(0, 0), (1, 2)]), (Reading(), [(0, 0), (1, 1)])):
        network = SuperNetwork(model(1, of=deep), lambda _, step: [cards[step]], reading=reading).eval()
        loss = Anchor(weight=0.5, every=99).bind(KIND, LessonContext(network, Hull(HULL.space, deep, cards[1]), 4))
        for network.step in range(2):
            (found,) = losses(network, loss, rows)
        anchor, own = (network.extracted(one).transformer(rows.inputs, rows.mask).layers for one in cards)
        squares = [F.mse_loss(own[mine][rows.mask], anchor[its][rows.mask]) for mine, its in pairs]
        labels = loss_of(KIND)(network.answer(cards[1], rows.inputs, rows.mask), rows)
        assert torch.allclose(found, labels + 0.5 * torch.stack(squares).mean(), rtol=1e-4)


@pytest.mark.parametrize(
    ("anchor", "design", "reading"),
    [(4, 2, Reading()), (4, 1, Reading()), (2, 4, Reading()), (2, 4, Reading("even"))],
)
def test_a_last_layer_is_normalised_and_compared_with_last_layers_alone(
    anchor: int, design: int, reading: Reading
) -> None:
    """Layers with the same weights give the same, but for the norm behind the last one."""
    hull = find_hull(load_space("autoformer-nano"))
    whole = hull.largest
    assert whole.encoder.final_norm
    cards = [replace(whole, encoder=replace(whole.encoder, layers=whole.encoder.layers[:many])) for many in (4, 2, 1)]
    step_cards = [next(card for card in cards if len(card.encoder.layers) == many) for many in (anchor, design)]
    network = SuperNetwork(model(1, of=whole), lambda _, step: [step_cards[step]], reading=reading).eval()
    loss = Anchor(weight=0.5, every=99).bind(KIND, LessonContext(network, hull, 4))
    rows = Batch(torch.randn(4, 1, 8, 8), torch.zeros(4, dtype=torch.long))
    for network.step in range(2):
        (found,) = losses(network, loss, rows)
    assert torch.allclose(found, loss_of(KIND)(network.answer(step_cards[1], rows.inputs), rows), atol=1e-6)


def test_a_projected_layer_is_compared_with_projected_ones_alone() -> None:
    """Nothing is left to compare where one design is projected behind its last layer and the other goes on."""
    block = Block(16, Attention(4, 4), (24,))
    whole = Card(encoder=Stack(TokenEmbedding(30, 16, length=12), (block,) * 2, out=20))
    shallow, rows = replace(whole, encoder=replace(whole.encoder, layers=(block,))), batch()
    cards = [whole, shallow]
    network = SuperNetwork(model(1, of=whole), lambda _, step: [cards[step]]).eval()
    loss = Anchor(weight=0.5, every=99).bind(KIND, LessonContext(network, Hull(HULL.space, whole, shallow), 4))
    for network.step in range(2):
        (found,) = losses(network, loss, rows)
    assert torch.equal(found, loss_of(KIND)(network.answer(shallow, rows.inputs, rows.mask), rows))


def test_an_anchor_has_rivals_only_now_and_then_and_is_judged_by_held_out_rows() -> None:
    rows, network = batch(), SuperNetwork(model(1), lambda rng, step: [order[step % 2]]).eval()

    def better(some: Batch) -> Card:
        return min(
            (SMALLEST, LARGEST), key=lambda one: float(loss_of(KIND)(network.answer_now(one, some).scores, some))
        )

    best, held = next((better(some), some) for some in map(batch, range(1, 99)) if better(some) != better(rows))
    order = [SMALLEST if best == LARGEST else LARGEST, best]
    loss = Anchor(every=3).bind(KIND, LessonContext(network, HULL, 9, held))
    anchors = []
    for network.step in range(7):
        losses(network, loss, rows)
        anchors.append(int(network.anchor[0]))
    assert anchors == [0, 0, 0, 3, 3, 3, 3]  # at step 6 the rival is worse on held-out rows, and better on those shown


def test_an_anchor_is_tried_by_the_steps_of_the_training_and_drawn_by_those_of_the_rule() -> None:
    network = SuperNetwork(model(1), lambda rng, step: [LARGEST])
    loss = Anchor(every=2).bind(KIND, LessonContext(network.eval(), HULL, 4))
    network.rule_follows_plan = True
    network.step, network.planned = 2, 3
    losses(network, loss, batch())
    assert network.anchor.tolist() == [3, network.draw, 0]


def test_the_alignment_of_a_step_is_the_mean_over_its_designs() -> None:
    found = []
    for number in (1, 3):
        network = SuperNetwork(model(1), lambda rng, step, number=number: [SMALLEST] * number if step else [LARGEST])
        loss = Anchor(weight=0.5).bind(KIND, LessonContext(network.eval(), HULL, 4))
        for network.step in range(2):  # the largest becomes the anchor at first
            last = losses(network, loss, batch())
        found.append(sum(last).item())
    assert len(last) == 3
    assert found[0] == pytest.approx(found[1])


def test_rows_apart_are_shown_to_one_design_and_the_teacher_each() -> None:
    rows, teacher = batch(), model(2)
    network = SuperNetwork(model(1), lambda rng, step: SplitBatch([LARGEST, SMALLEST, LARGEST]), teacher).eval()
    shown = list(network(rows.inputs).each(rows))
    assert [len(one.batch.inputs) for one in shown] == [3, 3, 2]
    for place, one in enumerate(shown):
        assert torch.allclose(one.teacher.scores, teacher(rows.inputs[place::3], rows.mask[place::3]), atol=1e-5)
    few = Batch(rows.inputs[:2], rows.labels[:2], rows.mask[:2])
    assert len(list(network(few.inputs).each(few))) == 2


def tags() -> Batch:
    rows = batch()
    places = torch.arange(9)[None] < torch.tensor([1, 9, 2, 5, 3, 1, 7, 4])[:, None]
    return replace(rows, labels=torch.where(places & rows.mask, rows.inputs % 2, IGNORED))


def words() -> Batch:
    rows = batch()
    chosen = rows.mask & (torch.arange(9)[None] < torch.tensor([1, 9, 2, 5, 3, 1, 7, 4])[:, None])
    return replace(rows, labels=rows.inputs[chosen], positions=chosen)


SPLIT = {
    KIND: (HEAD, batch),
    "token-classification": (HeadSpec("token-classification", 2), tags),
    "masked-lm": (HeadSpec("masked-lm"), words),
    "span-extraction": (HeadSpec("span-extraction", 2), lambda: replace(batch(), labels=torch.tensor([[0, 1]] * 8))),
    "regression": (HeadSpec(KIND, 1), lambda: replace(batch(), labels=torch.linspace(-100, 1, 8))),
}


@pytest.mark.parametrize("number", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("kind", SPLIT)
def test_equal_designs_with_rows_apart_have_the_loss_of_the_whole_batch(kind: str, number: int) -> None:
    """Eight rows are three, three and two for three designs, and have different numbers of words."""
    (spec, make), found = SPLIT[kind], []
    rows = make()
    for lesson in (Labels(), Distil(0.3)):
        for cards in ([SMALLEST], SplitBatch([SMALLEST] * number)):
            network = SuperNetwork(model(1, spec=spec), lambda rng, step, cards=cards: cards, model(2, spec=spec))
            found.append(sum(lesson.bind(kind)(network.eval()(rows.inputs), rows)).item())
    assert found[::2] == pytest.approx(found[1::2], rel=1e-4)


def test_rows_apart_of_equal_shares_count_as_before() -> None:
    rows, network = batch(), SuperNetwork(model(1), lambda rng, step: SplitBatch([LARGEST, SMALLEST])).eval()
    found = losses(network, Labels().bind(KIND), rows)
    each = [loss_of(KIND)(shown.design.scores, shown.batch) for shown in network(rows.inputs).each(rows)]
    assert all(torch.equal(one, other / 2) for one, other in zip(found, each, strict=True))


def test_alignments_and_hidden_states_of_rows_apart_count_by_rows() -> None:
    full = Batch(torch.randint(30, (8, 9)), torch.arange(8) % 2)  # without padding
    for lesson, teacher in ((HiddenStates(), model(2)), (Anchor(weight=0.5, every=99), None)):
        found = []
        for cards in ([SMALLEST], SplitBatch([SMALLEST] * 3)):
            network, loss = bound(lesson, cards, teacher)
            network._draw = lambda rng, step, cards=cards: cards if step else [LARGEST]
            for network.eval().step in range(2):
                last = losses(network, loss, full)
            found.append(sum(last).item())
        assert found[0] == pytest.approx(found[1], rel=1e-4)


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


def test_a_second_stage_is_taught_by_the_largest_design_whatever_teaches_the_first() -> None:
    lesson = TwoStage(Distil(), AttentionRelations(heads=4))
    lesson.check_designs(HULL, mixed(Identity()))  # its scores are all that is learned from it
    with pytest.raises(IllegalInput, match="the teacher has 3 channels"):
        lesson.check_designs(Hull(HULL.space, mixed(Attention(1, 3)), SMALLEST), LARGEST)


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
