"""SVG drawings: well-formed, self-contained, on the page, and true to the widths and counts of the design."""

import re
from dataclasses import replace
from itertools import pairwise
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from tests.report import cards

from formwright.arch.card import Card
from formwright.arch.layers import Block
from formwright.arch.ops import Attention
from formwright.report.palette import swatch
from formwright.report.svg import draw_svg
from formwright.report.words import describe

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


def test_titles_and_costs_are_escaped() -> None:
    nasty = "<script>&\"' \x00"
    root = parsed(cards.bert_base(), nasty, {"a<b": "1 & 2"})
    assert "<script>&\"' \N{REPLACEMENT CHARACTER}" in words(root)
    assert "a<b: 1 & 2" in words(root)
    assert not [item for item in root.iter() if item.tag.endswith("script")]


def test_a_page_brings_its_own_background() -> None:
    root = parsed(cards.bert_base())
    paper = next(item for item in root.iter() if item.tag.endswith("}rect"))
    assert float(paper.get("width", 0)) == float(root.get("width", 0)) - 1
    assert paper.get("fill", "").startswith("#F")


@pytest.mark.parametrize("name", cards.MIXERS)
def test_every_mixer_has_its_colour_and_words(name: str) -> None:
    root = parsed(cards.mixer_card(cards.MIXERS[name]))
    look = swatch(cards.MIXERS[name])
    assert {item.get("fill") for item in shapes(root, "head")} == {look.colour if look.filled else "none"}
    assert describe(cards.MIXERS[name]).replace(" x ", f" {TIMES} ") in " ".join(words(root))
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


def test_heads_are_tiles_up_to_a_limit() -> None:
    assert len(shapes(parsed(cards.bert_base()), "head")) == 12
    assert len(shapes(parsed(cards.text_encoder((Block(64, Attention(500, 8)),))), "head")) == 32


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


def test_deep_designs_without_a_pattern_stay_readable() -> None:
    rows = parsed(cards.uneven(96))
    assert len(shapes(rows, "layer")) == 96
    assert float(rows.get("height", 0)) < 96 * 30


def test_projections_are_trapezoids() -> None:
    (shape,) = shapes(parsed(cards.flexibert_mini()), "projection")
    points = [tuple(map(float, pair.split(","))) for pair in shape.get("points", "").split()]
    above, below = points[1][0] - points[0][0], points[2][0] - points[3][0]
    assert above == pytest.approx(2 * below)
    assert len(shapes(parsed(cards.decoder()), "projection")) == 1  # from the factorised table
    assert not shapes(parsed(cards.bert_base()), "projection")


def test_residuals_stand_around_parts_that_exist() -> None:
    assert len(shapes(parsed(cards.bert_base()), "residual")) == 2
    assert len(shapes(parsed(cards.mixer_card(cards.MIXERS["identity"])), "residual")) == 1


def test_one_rail_for_each_number_of_layers_read() -> None:
    rails = shapes(parsed(cards.encoder_decoder()), "cross")
    arrows = [(rail.get("d") or "").count("M") for rail in rails]
    assert arrows == [3, 4, 5]  # a rail, one reader each, and from one, two and three encoder boxes
    assert not shapes(parsed(cards.bert_base()), "cross")


def test_rails_reach_rows_of_long_decoders() -> None:
    card = cards.encoder_decoder()
    assert card.decoder is not None
    layers = tuple(replace(card.decoder.layers[index % 4], feed_forward=(64 * (index + 1),)) for index in range(30))
    long = replace(card, decoder=replace(card.decoder, layers=layers))
    assert len(shapes(parsed(long), "cross")) == 3


def test_cells_show_all_states_and_signs() -> None:
    root = parsed(cards.evolved())
    assert len(shapes(root, "state")) == 7 + 9
    assert words(root).count("+") == 5 + 7  # a junction of one branch joins nothing
    assert {"Encoder", "Decoder"} <= set(words(root))


def test_costs_stand_at_the_foot() -> None:
    root = parsed(cards.bert_base(), costs={"params": "109,482,240", "macs": "11.174 G"})
    assert "params: 109,482,240 \N{MIDDLE DOT} macs: 11.174 G" in " ".join(words(root)[-1].split())
