"""Delivered models are drawn with the widths of their cards."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.report.cards import MIXERS, text_encoder
from tests.report.compressed import card_of, compressed_facts

from formwright.arch.card import Card
from formwright.arch.layers import Block
from formwright.arch.ops import Attention
from formwright.report.chosen import MOST, chosen_of, teacher_of
from formwright.report.compression import Compression
from formwright.report.facts import StudyFacts


@pytest.fixture
def facts(tmp_path: Path) -> StudyFacts:
    return compressed_facts(tmp_path)


def compression_of(facts: StudyFacts) -> Compression:
    assert facts.compression is not None
    return facts.compression


def with_card(facts: StudyFacts, card: Card) -> StudyFacts:
    """Put another card in the place of the one of the first delivered model."""
    digest = facts.models[1].digest
    rows = tuple(replace(row, card=card) if row.digest == digest else row for row in facts.trials)
    return replace(facts, trials=rows, models=facts.models[:2])


def test_the_teacher_is_full_everywhere(facts: StudyFacts) -> None:
    teacher = teacher_of(facts, compression_of(facts))
    assert (teacher.heads, teacher.channels) == ((12,) * 4, (384,) * 4)
    assert teacher.cost == compression_of(facts).teacher.costs["macs"]


def test_widths_are_those_of_the_cards(facts: StudyFacts) -> None:
    found = {one.model.name: one for one in chosen_of(facts, compression_of(facts)).drawn}
    for number in range(3):
        one, card = found[f"trial-{number}"], card_of(number)
        assert card.encoder is not None
        blocks = [layer for layer in card.encoder.layers if isinstance(layer, Block)]
        heads = tuple(block.mixer.heads if isinstance(block.mixer, Attention) else 0 for block in blocks)
        assert one.heads == heads
        assert one.channels == tuple(sum(block.feed_forward) for block in blocks)
        assert (one.cost, one.hidden) == (one.model.costs["macs"], 96)


def test_the_costly_ones_come_first(facts: StudyFacts) -> None:
    costs = [one.cost for one in chosen_of(facts, compression_of(facts)).drawn]
    assert costs == sorted(costs, key=lambda cost: -(cost or 0))
    bare = replace(facts, models=tuple(replace(model, costs={}) for model in facts.models))
    assert [one.cost for one in chosen_of(bare, compression_of(bare)).drawn] == costs, "trials know their costs too"


def test_of_many_models_an_even_choice_is_drawn(tmp_path: Path) -> None:
    facts = compressed_facts(tmp_path, count=7, delivered=7)
    found = chosen_of(facts, compression_of(facts))
    assert (len(found.drawn), len(found.further), found.unknown) == (MOST, 1, ())
    costs = [model.costs["macs"] for model in facts.models if model.role == "front"]
    assert (found.drawn[0].cost, found.drawn[-1].cost) == (max(costs), min(costs))


def test_a_design_that_no_trial_has_is_named(facts: StudyFacts) -> None:
    lost = replace(facts, trials=tuple(row for row in facts.trials if row.digest != facts.models[1].digest))
    assert chosen_of(lost, compression_of(facts)).unknown == (facts.models[1].name,)


def test_a_shallower_design_lacks_its_last_layers(facts: StudyFacts) -> None:
    short = with_card(facts, text_encoder((Block(96, Attention(3, 8), (64,)),)))
    (one,) = chosen_of(short, compression_of(facts)).drawn
    assert (one.heads, one.channels) == ((3, 0, 0, 0), (64, 0, 0, 0))


def test_a_deeper_design_is_no_sub_network(facts: StudyFacts) -> None:
    deep = with_card(facts, text_encoder((Block(96, MIXERS["sdp"], (64,)),) * 5))
    found = chosen_of(deep, compression_of(facts))
    assert (found.drawn, found.unknown) == ((), (facts.models[1].name,))
