"""Attention relations: what is compared, and which designs have none."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from tests.supernet.lesson_runs import HEAD, HULL, LARGEST, SMALLEST, batch, bound, losses, translation
from tests.supernet.small import model

from formwright.arch.card import Card
from formwright.arch.layers import Block
from formwright.arch.ops import Attention, Identity, Operation, OpGraph, SeparableConvolution
from formwright.core.errors import IllegalInput
from formwright.nn.build import kept_skeleton
from formwright.space.zoo import load_space
from formwright.supernet.hull import Hull, sampled_cards
from formwright.supernet.inner_lessons import AttentionRelations, HiddenStates
from formwright.supernet.lessons import Answer, Distil, Labels, TwoStage
from formwright.supernet.network import SuperNetwork


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


def test_a_second_stage_is_taught_by_the_largest_design_whatever_teaches_the_first() -> None:
    lesson = TwoStage(Distil(), AttentionRelations(heads=4))
    lesson.check_designs(HULL, mixed(Identity()))  # its scores are all that is learned from it
    with pytest.raises(IllegalInput, match="the teacher has 3 channels"):
        lesson.check_designs(Hull(HULL.space, mixed(Attention(1, 3)), SMALLEST), LARGEST)
