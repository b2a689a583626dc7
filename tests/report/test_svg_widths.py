"""Bars are as tall as what is left of the full width."""

from itertools import pairwise
from xml.etree import ElementTree

import pytest

from formwright.report.svg_widths import draw_widths, listed


def shapes(drawing: str, kind: str) -> list[ElementTree.Element]:
    return [one for one in ElementTree.fromstring(drawing).iter() if one.get("class") == kind]


def test_bars_share_one_scale() -> None:
    drawing = draw_widths("heads", (12, 6, 3), (12, 12, 6))
    bars = [float(one.attrib["height"]) for one in shapes(drawing, "heads")]
    assert bars == pytest.approx([46, 23, 11.5])
    assert [float(one.attrib["height"]) for one in shapes(drawing, "full")] == pytest.approx([46, 46, 23])
    bottoms = {float(one.attrib["y"]) + float(one.attrib["height"]) for one in shapes(drawing, "heads")}
    assert len(bottoms) == 1


def test_what_is_left_out_has_no_bar_but_a_name() -> None:
    drawing = draw_widths("channels", (0, 384), (384, 384))
    assert len(shapes(drawing, "channels")) == len(shapes(drawing, "full out")) == 1
    assert ">out</text>" in drawing
    assert "Layer 1: no channels: left out" in drawing
    assert 'aria-label="channels of layers 1 to 2: left out, 384"' in drawing


@pytest.mark.parametrize("layers", [1, 6, 24, 48])
def test_columns_have_room_for_their_numbers(layers: int) -> None:
    drawing = ElementTree.fromstring(draw_widths("channels", (3072,) * layers, (3072,) * layers))
    width = float(drawing.attrib["viewBox"].split()[2])
    places = [float(one.attrib["x"]) for one in drawing.iter("text") if one.text == "3072"]
    assert len(places) == layers
    assert all(right - left >= 32 for left, right in pairwise(places))
    assert min(places) >= 16
    assert max(places) <= width - 16


def test_a_small_rest_can_be_seen() -> None:
    (bar,) = shapes(draw_widths("channels", (1,), (3072,)), "channels")
    assert float(bar.attrib["height"]) >= 1.5


def test_widths_are_named_one_after_the_other() -> None:
    assert listed((0, 4, 1536)) == "left out, 4, 1536"
