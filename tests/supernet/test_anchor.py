"""The anchor: when it is replaced, and which layers are aligned with its."""

from dataclasses import replace

import pytest
import torch
from tests.supernet.lesson_runs import HULL, KIND, LARGEST, SMALLEST, batch, losses, outputs, translation
from tests.supernet.small import card, model
from torch.nn import functional as F

from formwright.arch.card import Card
from formwright.arch.embeddings import TokenEmbedding
from formwright.arch.heads import HeadSpec
from formwright.arch.layers import Block, Stack
from formwright.arch.ops import Attention
from formwright.nn.inherit import Reading
from formwright.space.zoo import load_space
from formwright.supernet.automatic import sub_network
from formwright.supernet.hull import Hull, find_hull
from formwright.supernet.inner_lessons import Anchor
from formwright.supernet.lessons import LessonContext
from formwright.supernet.network import SuperNetwork
from formwright.train.loop import inputs_of
from formwright.train.losses import loss_of
from formwright.train.streams import Batch


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
