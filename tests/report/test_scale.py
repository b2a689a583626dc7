"""Scales: one for all widths, one for all bars."""

from tests.report.cards import decoder, encoder_decoder, flexibert_mini, text_encoder

from formwright.arch.layers import Branch, Cell, Junction
from formwright.arch.ops import Convolution, GatedLinearUnit
from formwright.report.scale import bar_scale, widest


def test_widest_looks_at_all_stacks_and_at_what_cells_hand_on() -> None:
    assert widest(flexibert_mini()) == 256
    assert widest(encoder_decoder()) == 640
    branches = Branch(0, Convolution(3), 300), Branch(0, GatedLinearUnit(), 200)
    assert widest(text_encoder((Cell(64, (Junction(*branches, "concatenate"),)),))) == 500


def test_the_fullest_box_just_holds_its_bars() -> None:
    # the narrow layers of 128 hold 1024, the wide ones of 256 only 512
    assert bar_scale(flexibert_mini(), lambda width: width) * 1024 == 128
    assert bar_scale(decoder(), lambda width: 2 * width) * 2048 == 1024


def test_a_design_without_bars_needs_no_scale() -> None:
    cell = Cell(64, (Junction(Branch(0, Convolution(3), 64)),))
    assert bar_scale(text_encoder((cell,)), lambda width: width) == 0
