from xml.etree import ElementTree

import pytest

from formwright.report.population import Life, Population
from formwright.report.svg_population import draw_population

FOUND = Population(
    2,
    (Life(0, 0.5, 3), Life(1, 0.6, 5, 0), Life(3, 0.7, None, 0), Life(5, 0.8, None, 3)),
    ((2, 0.1), (4, 0.55)),
)


def drawn(found: Population = FOUND, goal: str = "accuracy") -> ElementTree.Element:
    return ElementTree.fromstring(draw_population(found, goal, larger_is_better=True))


def lives(drawing: ElementTree.Element) -> list[ElementTree.Element]:
    return [group for group in drawing.iter("g") if "life" in group.attrib["class"].split()]


def test_every_life_is_a_line_at_its_score_as_long_as_it_was() -> None:
    found = {int(group.attrib["data-trial"]): group for group in lives(drawn())}
    starts = {number: float(group.find("circle").attrib["cx"]) for number, group in found.items()}  # type: ignore[union-attr]
    ends = {number: float(group.find("path").attrib["d"].split("H")[1]) for number, group in found.items()}  # type: ignore[union-attr]
    heights = [float(group.find("circle").attrib["cy"]) for group in found.values()]  # type: ignore[union-attr]
    assert ends[0] == starts[3]
    assert ends[1] == ends[3] == starts[5], "the last trial is the end of the figure"
    assert heights == sorted(heights, reverse=True), "the better the higher"
    assert [group.attrib["class"] for group in found.values()] == ["life", "life", "life alive", "life alive"]


def test_titles_say_what_became_of_a_design() -> None:
    titles = [title.text for title in drawn().iter("title")]
    assert "Trial 0: accuracy 0.5000, trial 3 took its place" in titles
    assert "Trial 5: accuracy 0.8000, among the best to the end" in titles
    assert "Trial 4: accuracy 0.5500" in titles


def test_children_hang_from_their_parents_and_others_are_dots_within_the_figure() -> None:
    drawing = drawn()
    assert len([one for one in drawing.iter("path") if one.get("class") == "birth"]) == 3
    dots = [one for one in drawing.iter("circle") if one.get("class") == "other"]
    height = float(drawing.attrib["viewBox"].split()[3])
    assert [one.attrib["data-trial"] for one in dots] == ["2", "4"]
    assert all(0 < float(dot.attrib["cy"]) < height for dot in dots), "the worst stands on the edge"


@pytest.mark.parametrize("life", [Life(0, 0.5), Life(0, float(10**9))])
def test_one_trial_is_enough(life: Life) -> None:
    assert len(lives(drawn(Population(3, (life,))))) == 1


def test_very_many_dots_are_thinned() -> None:
    many = tuple((number, 0.1) for number in range(5_000))
    dots = [
        one for one in drawn(Population(1, (Life(5_000, 0.5),), many)).iter("circle") if one.get("class") == "other"
    ]
    assert len(dots) == 1_500


def test_names_are_text() -> None:
    assert '<b>"&' in drawn(goal='<b>"&').attrib["aria-label"]
