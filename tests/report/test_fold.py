"""Folding: nothing is lost, and as little as possible is drawn twice."""

from hypothesis import given
from hypothesis import strategies as st

from formwright.arch.layers import Block
from formwright.arch.ops import Attention
from formwright.report.fold import Funnel, Repeat, fold, funnel, inner_funnel

A, B, C = (Block(width, Attention(1, width)) for width in (8, 16, 24))


def shape(repeats: tuple[Repeat, ...]) -> list[tuple[list[tuple[Block, int]], int]]:
    return [([(run.layer, run.times) for run in repeat.runs], repeat.times) for repeat in repeats]


def test_equal_neighbours_become_one_run() -> None:
    assert shape(fold((A,) * 12)) == [([(A, 12)], 1)]
    assert shape(fold((A, A, B, A))) == [([(A, 2)], 1), ([(B, 1)], 1), ([(A, 1)], 1)]


def test_patterns_become_one_repeat() -> None:
    assert shape(fold((A, B) * 48)) == [([(A, 1), (B, 1)], 48)]
    assert shape(fold((C, A, A, B, A, A, B))) == [([(C, 1)], 1), ([(A, 2), (B, 1)], 2)]


def test_numbers_of_layers_count_from_one() -> None:
    first, second = fold((C, C, *(A, B) * 3))
    assert (first.first, first.last) == (1, 2)
    assert (second.first, second.last, second.period) == (3, 8, 2)
    assert [(run.first, run.last) for run in second.runs] == [(3, 3), (4, 4)]


def test_thousands_of_different_layers_are_folded_in_no_time() -> None:
    layers = [Block(8, Attention(1, 8), (width,)) for width in range(1, 5001)]
    assert len(fold(layers)) == 5000
    assert [repeat.times for repeat in fold(layers[:100] * 20)] == [20]


@given(st.lists(st.sampled_from((A, B, C)), min_size=1, max_size=40))
def test_folding_loses_nothing(layers: list[Block]) -> None:
    repeats = fold(layers)
    unfolded = [run.layer for item in repeats for _ in range(item.times) for run in item.runs for _ in range(run.times)]
    assert unfolded == layers
    assert repeats[-1].last == len(layers)


def test_funnels_stand_between_unequal_widths_only() -> None:
    assert funnel(128, 128) is None
    assert funnel(256, 128) == Funnel(256, 128)
    assert inner_funnel(fold((A, B) * 2)[0].runs) == Funnel(16, 8)
