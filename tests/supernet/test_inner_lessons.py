"""Lessons from within, on a small encoder: what they compare, what they leave alone, and what they keep."""

from typing import Any

import pytest
import torch
from tests.supernet.small import card, model, sentences
from torch.nn import functional as F

from formwright.arch.card import Card
from formwright.arch.heads import HeadSpec
from formwright.core.codec import range_faults
from formwright.core.errors import IllegalInput
from formwright.core.options import PartReader, PartWriter
from formwright.core.rng import derive
from formwright.space.zoo import load_space
from formwright.space.zoo.elastic import elastic
from formwright.supernet.automatic import sub_network
from formwright.supernet.hull import Hull, find_hull
from formwright.supernet.inner_lessons import Anchor, AttentionRelations, HiddenStates, evenly
from formwright.supernet.lessons import LESSONS, Answer, Distil, Labels, Lesson, LessonContext, TwoStage
from formwright.supernet.library import LibraryWeights, library_of
from formwright.supernet.network import SuperNetwork
from formwright.supernet.rules import Largest, Phases, SplitBatch, Uniform
from formwright.train.hyperparameters import Hyperparameters
from formwright.train.loop import train
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
    assert network.hidden_map is None  # all are as wide as the teacher
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
    lesson.check_rule(Phases(rules, (1, 2)))
    lesson.check_rule(Uniform())
    with pytest.raises(IllegalInput, match=r"0\.333"):
        lesson.check_rule(Phases(rules, (1, 1)))


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


@pytest.mark.parametrize(
    "make", [lambda: Anchor(HiddenStates()), lambda: TwoStage(TwoStage()), lambda: TwoStage(Anchor())]
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
