from itertools import pairwise
from typing import Any
from xml.etree import ElementTree

import pytest
from tests.report.compressed import CHANNELS, HEADS, note_of
from tests.report.test_final_models import note

from formwright.report.compression import compression
from formwright.report.svg_canvas import LETTER
from formwright.report.svg_widths import draw_space, draw_widths, listed


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


def drawn(**space: Any) -> ElementTree.Element:
    found = compression([note(1, compress=note_of(space={**note_of()["space"], **space}))])
    assert found is not None
    return ElementTree.fromstring(draw_space(found))


def circles(drawing: ElementTree.Element, kind: str) -> list[tuple[float, float]]:
    found = [one for one in drawing.iter("circle") if one.get("class") == kind]
    return [(float(one.attrib["cx"]), float(one.attrib["cy"])) for one in found]


def words(drawing: ElementTree.Element) -> list[str]:
    return [one.text or "" for one in drawing.iter("text")]


def test_every_width_is_a_dot() -> None:
    drawing = drawn()
    for kind, widths in (("heads", HEADS), ("channels", CHANNELS)):
        assert len(circles(drawing, kind)) == sum(one > 0 for layer in widths for one in layer)
    assert len(circles(drawing, "hollow")) == 3
    assert len({x for x, _ in circles(drawing, "heads")}) == 4, "one column for each layer"


def test_wider_stands_higher_and_left_out_below_all() -> None:
    drawing = drawn(heads=[[0, 1, 4, 12]] * 4)
    column = [y for x, y in circles(drawing, "heads") if x == circles(drawing, "heads")[0][0]]
    assert all(low > high for low, high in pairwise(column))
    assert circles(drawing, "hollow")[0][1] > column[0] + 15
    assert max(y for _, y in circles(drawing, "heads")) < min(y for _, y in circles(drawing, "channels"))


def test_left_out_is_said_where_it_may_be() -> None:
    assert words(drawn()).count("left out") == 2
    assert words(drawn(heads=[[4, 12]] * 4)).count("left out") == 1


def test_bars_reach_to_the_full_width_of_the_layer() -> None:
    bars = [one for one in drawn(full=[[12, 384], [6, 192]] * 2).iter("rect") if one.get("class") == "full"]
    tall = [float(one.attrib["height"]) for one in bars]
    assert tall == pytest.approx([140, 70] * 2 + [170, 85] * 2)


def test_numbers_never_stand_on_one_another() -> None:
    drawing = drawn(channels=[[16, 32, 48, 64, 200, 352, 368, 384]] * 4)
    columns: dict[str, list[float]] = {}
    for one in drawing.iter("text"):
        if one.get("class") == "over":
            columns.setdefault(one.attrib["x"], []).append(float(one.attrib["y"]))
    for places in columns.values():
        ordered = sorted(places)
        assert all(below - above >= 10.9 for above, below in pairwise(ordered))
    assert {"16", "384", "200"} <= set(words(drawing))


@pytest.mark.parametrize("layers", [1, 6, 24, 48])
def test_numbers_stay_on_the_page_and_clear_of_the_next_column(layers: int) -> None:
    drawing = drawn(full=[[16, 4096]] * layers, heads=[[16]] * layers, channels=[[4096]] * layers)
    numbers = [one for one in drawing.iter("text") if one.text == "4096" and one.get("class") == "over"]
    ends = [float(one.attrib["x"]) + 4 * LETTER for one in numbers]
    bars = sorted(float(one.attrib["x"]) for one in drawing.iter("rect"))[2::2]
    assert len(ends) == layers
    assert all(end <= bar for end, bar in zip(ends, bars, strict=False))
    assert max(ends) <= float(drawing.attrib["viewBox"].split()[2])


def test_every_number_of_twelve_heads_has_room() -> None:
    assert set(map(str, range(1, 13))) <= set(words(drawn(heads=[list(range(13))] * 4)))


def test_names_are_text() -> None:
    found = compression([note(1, compress=note_of(model='<b>"&\x00'))])
    assert found is not None
    drawing = ElementTree.fromstring(draw_space(found))
    assert '<b>"&\N{REPLACEMENT CHARACTER}' in drawing.attrib["aria-label"]
