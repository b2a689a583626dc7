from types import ModuleType
from xml.etree import ElementTree

import pytest

SVG = "{http://www.w3.org/2000/svg}"


def points(element: ElementTree.Element) -> list[tuple[float, float]]:
    pairs = (pair.split(",") for pair in element.attrib["points"].split())
    return [(float(x), float(y)) for x, y in pairs]


def test_a_curve_rises_to_the_right_and_stays_inside_its_frame(script: ModuleType) -> None:
    line = script.Line("a < b", [1, 2, 3], [0.1, 0.2, 0.4], [0.0, 0.1, 0.3], [0.2, 0.3, 0.5])
    page = ElementTree.fromstring(script.chart("t", [line], "x", "y"))
    places = points(page.find(f"{SVG}polyline"))
    assert places == sorted(places)
    assert [y for _, y in places] == sorted((y for _, y in places), reverse=True)
    band = points(page.find(f"{SVG}polygon"))
    assert len(band) == 6
    for x, y in places + band:
        assert script.LEFT <= x <= script.WIDTH - script.RIGHT
        assert script.TOP <= y <= script.HEIGHT - script.BOTTOM
    assert "a < b" in [text.text for text in page.iter(f"{SVG}text")]


def test_what_is_below_the_lower_end_lies_on_the_edge(script: ModuleType) -> None:
    line = script.Line("low", [1, 2], [0.1, 0.9])
    page = ElementTree.fromstring(script.chart("t", [line], "x", "y", y_from=0.5))
    assert points(page.find(f"{SVG}polyline"))[0][1] == script.HEIGHT - script.BOTTOM


@pytest.mark.parametrize(("low", "high"), [(0, 1), (0.62, 0.91), (3, 100), (0.001, 0.0017)])
def test_an_axis_has_a_few_round_ticks(script: ModuleType, low: float, high: float) -> None:
    ticks = script.Axis("", low, high, (0, 100)).ticks()
    assert 3 <= len(ticks) <= 8
    assert all(low <= tick <= high * 1.0001 for tick in ticks)


def test_points_and_axes(script: ModuleType) -> None:
    axis = script.Axis("", 10, 1000, (0, 100), logarithmic=True)
    assert axis.place(100) == pytest.approx(50)
    assert axis.ticks() == [10, 20, 50, 100, 200, 500, 1000]
    cloud = script.Line("cloud", [1, 2, 3], [1, 2, 3], dots=True)
    page = ElementTree.fromstring(script.chart("t", [cloud], "x", "y"))
    assert len(page.findall(f"{SVG}circle")) == 4  # one of them in the legend
    assert page.find(f"{SVG}polyline") is None
    page = ElementTree.fromstring(script.chart("t", [script.Line("a", [0.5], [0.5], dots=True)], "x", "y"))
    dot = page.find(f"{SVG}circle")
    assert script.LEFT < float(dot.attrib["cx"]) < script.WIDTH - script.RIGHT
    assert script.TOP < float(dot.attrib["cy"]) < script.HEIGHT - script.BOTTOM
