"""Sketches hold what the page draws of a design, every layer once."""

from hypothesis import given, settings
from tests.report.cards import any_cards, bert_base, encoder_decoder, evolved, flexibert_mini, text_encoder

from formwright.arch.card import Card
from formwright.arch.layers import Block
from formwright.arch.ops import Identity
from formwright.report.palette import swatches_of
from formwright.report.sketch import Sketches
from formwright.report.words import describe_layer, headline


def test_equal_layers_are_written_once() -> None:
    sketches = Sketches()
    (stack,) = sketches.add(bert_base())[2]
    assert stack[2] == [0] * 12
    assert len(sketches.layers) == 1
    assert sketches.add(bert_base())[2] == [stack]


def test_a_block_has_its_heads_and_its_widths() -> None:
    sketches = Sketches()
    sketches.add(bert_base())
    words, width, output, bands, bars, lines = sketches.layers[0]
    assert (width, output, bands, bars) == (768, 768, [[[0, 12]]], [3072])
    assert sketches.swatches[0].name == "self-attention"
    assert sketches.phrases[lines[0]].startswith("self-attention, 12 heads x 64")
    assert sketches.phrases[words] == describe_layer(bert_base().stacks[0].layers[0])


def test_two_stacks_and_cells() -> None:
    sketches = Sketches()
    assert len(sketches.add(encoder_decoder())[2]) == 2
    sketches.add(evolved())
    assert any(len(band) == 2 for layer in sketches.layers for band in layer[3])


def test_an_empty_layer_says_so() -> None:
    sketches = Sketches()
    sketches.add(text_encoder((Block(64, Identity()),)))
    assert [sketches.phrases[line] for line in sketches.layers[0][5]] == ["nothing"]


@settings(max_examples=25)
@given(any_cards())
def test_any_card_can_be_sketched(card: Card) -> None:
    sketches = Sketches()
    first, _, stacks = sketches.add(card)
    assert sketches.phrases[first] == headline(card)[:160]
    assert [len(stack[2]) for stack in stacks] == [len(stack.layers) for stack in card.stacks]
    assert all(len(phrase) <= 160 for phrase in sketches.phrases)
    assert set(sketches.swatches) <= set(swatches_of(card))


def test_layers_are_shared_between_designs() -> None:
    sketches = Sketches()
    for _ in range(3):
        sketches.add(flexibert_mini())
    assert len(sketches.layers) == len(set(flexibert_mini().stacks[0].layers))
