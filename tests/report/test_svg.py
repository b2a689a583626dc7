"""SVG drawings and what they share with others: well-formed, true to the design; colours, cells, runs of layers."""

import re
from dataclasses import replace
from itertools import combinations, pairwise
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.report import cards
from tests.report.cards import bert_base, cells, decoder, encoder_decoder, evolved, flexibert_mini, text_encoder

from formwright.arch import ops
from formwright.arch.card import Card
from formwright.arch.layers import Block, Branch, Cell, Junction
from formwright.arch.ops import Attention, Convolution, GatedLinearUnit, Identity
from formwright.report import layer_runs
from formwright.report.palette import ink, luminance, swatches_of
from formwright.report.svg import draw_svg
from formwright.report.svg_cells import CellPlan
from formwright.report.svg_layers import Column

TIMES = "\N{MULTIPLICATION SIGN}"


def parsed(card: Card, title: str = "", costs: dict[str, str] | None = None) -> ElementTree.Element:
    return ElementTree.fromstring(draw_svg(card, title, costs))


def shapes(root: ElementTree.Element, kind: str) -> list[ElementTree.Element]:
    return [item for item in root.iter() if item.get("class") == kind]


def sizes(root: ElementTree.Element, kind: str) -> list[float]:
    return [float(item.get("width", 0)) for item in shapes(root, kind)]


def words(root: ElementTree.Element) -> list[str]:
    return [item.text or "" for item in root.iter() if item.tag.endswith("}text")]


def assert_on_the_page(root: ElementTree.Element) -> None:
    width, height = float(root.get("width", 0)), float(root.get("height", 0))
    for item in root.iter():
        if item.tag.endswith("}rect"):
            left, top = float(item.get("x", 0)), float(item.get("y", 0))
            assert left >= 0
            assert left + float(item.get("width", 0)) <= width
            assert top >= 0
            assert top + float(item.get("height", 0)) <= height
        if item.tag.endswith("}text"):
            assert 0 < float(item.get("x", 0)) < width
            assert 0 < float(item.get("y", 0)) < height
        if item.tag.endswith("}polygon"):
            assert all(0 <= float(pair.split(",")[0]) <= width for pair in item.get("points", "").split())


def assert_words_apart(root: ElementTree.Element) -> None:
    texts = [item for item in root.iter() if item.tag.endswith("}text")]
    beside = [item for item in texts if item.get("text-anchor") in ("start", "end")]
    for column in {item.get("x") for item in beside}:
        heights = sorted(float(item.get("y", 0)) for item in beside if item.get("x") == column)
        assert all(below - above >= 14 for above, below in pairwise(heights)), heights


@pytest.mark.parametrize("name", cards.CARDS)
def test_every_design_is_well_formed_on_the_page_and_loads_and_runs_nothing(name: str) -> None:
    drawing = draw_svg(cards.CARDS[name], name, {"params": "5"})
    root = ElementTree.fromstring(drawing)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert_on_the_page(root)
    assert_words_apart(root)
    assert not re.search(r"<script|<image|<foreignObject|href|url\(|@import|\bon\w+=", drawing)
    assert drawing.count("http") == 1  # the name space


@given(cards.any_cards())
@settings(max_examples=40)
def test_any_design_is_well_formed_and_on_the_page(card: Card) -> None:
    root = parsed(card)
    assert_on_the_page(root)
    assert_words_apart(root)


def test_titles_and_costs_are_escaped_on_paper() -> None:
    nasty = "<script>&\"' \x00"
    root = parsed(cards.bert_base(), nasty, {"a<b": "1 & 2"})
    assert "<script>&\"' \N{REPLACEMENT CHARACTER}" in words(root)
    assert "a<b: 1 & 2" in words(root)
    assert not [item for item in root.iter() if item.tag.endswith("script")]
    root = parsed(cards.bert_base())
    paper = next(item for item in root.iter() if item.tag.endswith("}rect"))
    assert float(paper.get("width", 0)) == float(root.get("width", 0)) - 1
    assert paper.get("fill", "").startswith("#F")
    root = parsed(cards.bert_base(), costs={"params": "109,482,240", "macs": "11.174 G"})
    assert "params: 109,482,240 \N{MIDDLE DOT} macs: 11.174 G" in " ".join(words(root)[-1].split())


@pytest.mark.parametrize("name", cards.MIXERS)
def test_every_mixer_has_its_colour_and_words(name: str) -> None:
    root = parsed(cards.mixer_card(cards.MIXERS[name]))
    look = cards.MIXERS[name].SWATCH
    assert {item.get("fill") for item in shapes(root, "head")} == {look.colour if look.filled else "none"}
    assert cards.MIXERS[name].describe().replace(" x ", f" {TIMES} ") in " ".join(words(root))
    assert look.name in words(root)  # the legend


def test_widths_of_boxes_and_bars_are_those_of_layers() -> None:
    widths = (1024, 512, 768, 256)
    root = parsed(cards.text_encoder(tuple(Block(width, Attention(2, 64), (512,)) for width in widths)))
    boxes = sizes(root, "layer")
    assert boxes == pytest.approx([boxes[0] * width / 1024 for width in widths], abs=0.1)
    assert set(sizes(parsed(cards.encoder_decoder()), "layer")) == {250.0 * 512 / 640, 250.0}, (
        "one scale for both columns"
    )
    root = parsed(cards.flexibert_mini())
    bars = sizes(root, "feed-forward")
    assert bars == pytest.approx([bars[3] / 2] * 3 + [bars[3]], abs=0.1)
    assert max(bars) < min(sizes(root, "layer"))


def test_heads_are_tiles_and_deep_designs_stay_readable() -> None:
    assert len(shapes(parsed(cards.bert_base()), "head")) == 12
    assert len(shapes(parsed(cards.text_encoder((Block(64, Attention(500, 8)),))), "head")) == 32
    rows = parsed(cards.uneven(96))
    assert len(shapes(rows, "layer")) == 96
    assert float(rows.get("height", 0)) < 96 * 30
    root = parsed(cards.evolved())
    assert len(shapes(root, "state")) == 7 + 9
    assert words(root).count("+") == 5 + 7  # a junction of one branch joins nothing
    assert {"Encoder", "Decoder"} <= set(words(root))


@pytest.mark.parametrize(
    ("card", "layers", "times", "pattern"),
    [
        (cards.vision(), 2, (5, 8), ""),
        (cards.speech(), 2, (6,), "1\N{EN DASH}12"),
        (cards.deep(96), 4, (24, 12, 48), "25\N{EN DASH}48"),
    ],
)
def test_equal_layers_and_patterns_are_folded(card: Card, layers: int, times: tuple[int, ...], pattern: str) -> None:
    root = parsed(card)
    assert len(shapes(root, "layer")) == layers
    assert [word for word in words(root) if word.startswith(TIMES)] == [f"{TIMES} {number}" for number in times]
    assert len(shapes(root, "pattern")) == bool(pattern)
    assert (f"Layers {pattern}, a pattern of 2" in words(root)) == bool(pattern)


def test_projections_residuals_and_rails_stand_where_they_belong() -> None:
    (shape,) = shapes(parsed(cards.flexibert_mini()), "projection")
    points = [tuple(map(float, pair.split(","))) for pair in shape.get("points", "").split()]
    above, below = points[1][0] - points[0][0], points[2][0] - points[3][0]
    assert above == pytest.approx(2 * below)
    assert len(shapes(parsed(cards.decoder()), "projection")) == 1  # from the factorised table
    assert not shapes(parsed(cards.bert_base()), "projection")
    assert len(shapes(parsed(cards.bert_base()), "residual")) == 2
    assert len(shapes(parsed(cards.mixer_card(cards.MIXERS["identity"])), "residual")) == 1
    rails = shapes(parsed(cards.encoder_decoder()), "cross")
    arrows = [(rail.get("d") or "").count("M") for rail in rails]
    assert arrows == [3, 4, 5]  # a rail, one reader each, and from one, two and three encoder boxes
    assert not shapes(parsed(cards.bert_base()), "cross")
    card = cards.encoder_decoder()
    assert card.decoder is not None
    layers = tuple(replace(card.decoder.layers[index % 4], feed_forward=(64 * (index + 1),)) for index in range(30))
    long = replace(card, decoder=replace(card.decoder, layers=layers))
    assert len(shapes(parsed(long), "cross")) == 3


COLUMN = Column(centre=200, room=360, words_at=420, words_room=330, anchor="start", scale=0.5)


def test_only_wires_that_skip_a_state_get_a_lane() -> None:
    cell = Cell(64, tuple(Junction(Branch(index, GatedLinearUnit(), 64)) for index in range(4)))
    assert CellPlan(COLUMN, cell, 0).lanes == {}
    first = Junction(Branch(0, GatedLinearUnit(), 64))
    second = Junction(Branch(1, GatedLinearUnit(), 64), Branch(0, Identity(), 64))
    (wire,) = CellPlan(COLUMN, Cell(64, (first, second)), 0).lanes
    assert (wire.state, wire.junction, wire.side) == (0, 2, 1)


@given(cells())
def test_lanes_are_shared_one_after_the_other_inside_the_box(cell: Cell) -> None:
    lanes = CellPlan(COLUMN, cell, 0).lanes
    for one, other in combinations(lanes, 2):
        if one.side == other.side and lanes[one] == lanes[other]:
            assert one.junction <= other.state or other.junction <= one.state
    plan = CellPlan(COLUMN, cell, 10)
    half = COLUMN.box(cell.width) / 2
    assert all(abs(plan.lane(wire) - COLUMN.centre) < half for wire in plan.lanes)
    for index in range(1, len(cell.junctions) + 1):
        x, top = plan.branch(index, -1)
        assert COLUMN.centre - half < x <= COLUMN.centre
        assert plan.state(index - 1) < top < plan.state(index)


A, B, C = (Block(width, Attention(1, width)) for width in (8, 16, 24))


def shape(repeats: tuple[layer_runs.RepeatedPattern, ...]) -> list[tuple[list[tuple[Block, int]], int]]:
    return [([(run.layer, run.times) for run in repeat.runs], repeat.times) for repeat in repeats]


def test_equal_neighbours_become_runs_and_patterns_repeats_with_numbers_from_one() -> None:
    assert shape(layer_runs.fold_layers((A,) * 12)) == [([(A, 12)], 1)]
    assert shape(layer_runs.fold_layers((A, A, B, A))) == [([(A, 2)], 1), ([(B, 1)], 1), ([(A, 1)], 1)]
    assert shape(layer_runs.fold_layers((A, B) * 48)) == [([(A, 1), (B, 1)], 48)]
    assert shape(layer_runs.fold_layers((C, A, A, B, A, A, B))) == [([(C, 1)], 1), ([(A, 2), (B, 1)], 2)]
    first, second = layer_runs.fold_layers((C, C, *(A, B) * 3))
    assert (first.first, first.last) == (1, 2)
    assert (second.first, second.last, second.period) == (3, 8, 2)
    assert [(run.first, run.last) for run in second.runs] == [(3, 3), (4, 4)]
    assert layer_runs.inner_projection(layer_runs.fold_layers((A, B) * 2)[0].runs) == layer_runs.Projection(16, 8)


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


def test_bars_are_scaled_by_the_fullest_box_of_all_stacks() -> None:
    assert layer_runs.widest(flexibert_mini()) == 256
    assert layer_runs.widest(encoder_decoder()) == 640
    branches = Branch(0, Convolution(3), 300), Branch(0, GatedLinearUnit(), 200)
    assert layer_runs.widest(text_encoder((Cell(64, (Junction(*branches, "concatenate"),)),))) == 500
    # the narrow layers of 128 hold 1024, the wide ones of 256 only 512
    assert layer_runs.bar_scale(flexibert_mini(), lambda width: width) * 1024 == 128
    assert layer_runs.bar_scale(decoder(), lambda width: 2 * width) * 2048 == 1024
    cell = Cell(64, (Junction(Branch(0, Convolution(3), 64)),))
    assert layer_runs.bar_scale(text_encoder((cell,)), lambda width: width) == 0


ALL = [kind.SWATCH for kind in ops.all_operations().values()]


def test_no_two_kinds_look_alike_and_the_legend_names_what_is_used() -> None:
    for one, other in combinations(ALL, 2):
        assert one.colour != other.colour
        assert one.glyph != other.glyph
        assert one.name != other.name
    for item in ALL:
        low, high = sorted((luminance(item.colour), luminance(ink(item.colour))))
        assert (high + 0.05) / (low + 0.05) >= 4.5, item.name
    assert luminance("#000000") == 0
    assert abs(luminance("#FFFFFF") - 1) < 1e-9
    assert luminance("#00FF00") > luminance("#FF0000") > luminance("#0000FF")
    assert [item.name for item in swatches_of(bert_base())] == ["self-attention"]
    assert [item.name for item in swatches_of(evolved())] == [
        "self-attention",
        "cross-attention",
        "separable convolution",
        "convolution or dense map",
        "gated linear unit",
        "identity",
    ]
