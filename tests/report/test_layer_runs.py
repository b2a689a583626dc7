from hypothesis import given
from hypothesis import strategies as st
from tests.report.cards import decoder, encoder_decoder, flexibert_mini, text_encoder

from formwright.arch.layers import Block, Branch, Cell, Junction
from formwright.arch.ops import Attention, Convolution, GatedLinearUnit
from formwright.report import layer_runs

A, B, C = (Block(width, Attention(1, width)) for width in (8, 16, 24))


def shape(repeats: tuple[layer_runs.RepeatedPattern, ...]) -> list[tuple[list[tuple[Block, int]], int]]:
    return [([(run.layer, run.times) for run in repeat.runs], repeat.times) for repeat in repeats]


def test_equal_neighbours_become_one_run() -> None:
    assert shape(layer_runs.fold_layers((A,) * 12)) == [([(A, 12)], 1)]
    assert shape(layer_runs.fold_layers((A, A, B, A))) == [([(A, 2)], 1), ([(B, 1)], 1), ([(A, 1)], 1)]


def test_patterns_become_one_repeat() -> None:
    assert shape(layer_runs.fold_layers((A, B) * 48)) == [([(A, 1), (B, 1)], 48)]
    assert shape(layer_runs.fold_layers((C, A, A, B, A, A, B))) == [([(C, 1)], 1), ([(A, 2), (B, 1)], 2)]


def test_numbers_of_layers_count_from_one() -> None:
    first, second = layer_runs.fold_layers((C, C, *(A, B) * 3))
    assert (first.first, first.last) == (1, 2)
    assert (second.first, second.last, second.period) == (3, 8, 2)
    assert [(run.first, run.last) for run in second.runs] == [(3, 3), (4, 4)]


def test_thousands_of_different_layers_are_folded_in_no_time() -> None:
    layers = [Block(8, Attention(1, 8), (width,)) for width in range(1, 5001)]
    assert len(layer_runs.fold_layers(layers)) == 5000
    assert [repeat.times for repeat in layer_runs.fold_layers(layers[:100] * 20)] == [20]


@given(st.lists(st.sampled_from((A, B, C)), min_size=1, max_size=40))
def test_folding_loses_nothing(layers: list[Block]) -> None:
    repeats = layer_runs.fold_layers(layers)
    unfolded = [run.layer for item in repeats for _ in range(item.times) for run in item.runs for _ in range(run.times)]
    assert unfolded == layers
    assert repeats[-1].last == len(layers)


def test_funnels_stand_between_unequal_widths_only() -> None:
    assert layer_runs.inner_projection(layer_runs.fold_layers((A, B) * 2)[0].runs) == layer_runs.Projection(16, 8)


def test_widest_looks_at_all_stacks_and_at_what_cells_hand_on() -> None:
    assert layer_runs.widest(flexibert_mini()) == 256
    assert layer_runs.widest(encoder_decoder()) == 640
    branches = Branch(0, Convolution(3), 300), Branch(0, GatedLinearUnit(), 200)
    assert layer_runs.widest(text_encoder((Cell(64, (Junction(*branches, "concatenate"),)),))) == 500


def test_the_fullest_box_just_holds_its_bars() -> None:
    # the narrow layers of 128 hold 1024, the wide ones of 256 only 512
    assert layer_runs.bar_scale(flexibert_mini(), lambda width: width) * 1024 == 128
    assert layer_runs.bar_scale(decoder(), lambda width: 2 * width) * 2048 == 1024


def test_a_design_without_bars_needs_no_scale() -> None:
    cell = Cell(64, (Junction(Branch(0, Convolution(3), 64)),))
    assert layer_runs.bar_scale(text_encoder((cell,)), lambda width: width) == 0
