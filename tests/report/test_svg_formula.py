from xml.etree import ElementTree

import pytest

from formwright.arch.primitives import Term
from formwright.report.svg_formula import draw_formula, draw_kernel
from formwright.report.term_plan import plan
from formwright.space.zoo.autobert_zero import SECOND_LAYER, STANDARD_ATTENTION, TWELFTH_LAYER


@pytest.mark.parametrize("term", [STANDARD_ATTENTION, SECOND_LAYER, TWELFTH_LAYER, "P"], ids=str)
def test_every_operation_and_every_line_is_drawn_inside(term: Term) -> None:
    drawing, nodes = ElementTree.fromstring(draw_formula(term)), plan(term)
    assert [one.text for one in drawing.iter("text")] == [node.words for node in nodes]
    assert len(list(drawing.iter("path"))) == 1 + sum(len(node.operands) for node in nodes), "and one out"
    width, height = map(float, drawing.attrib["viewBox"].split()[2:])
    for box in drawing.iter("rect"):
        x, y, wide, high = (float(box.attrib[name]) for name in ("x", "y", "width", "height"))
        assert 0 <= x < x + wide <= width
        assert 0 <= y < y + high <= height


def test_the_formula_is_told_to_those_who_cannot_see_it() -> None:
    assert 'aria-label="The graph of softmax(Q·Kᵀ / √d)·V"' in draw_formula(STANDARD_ATTENTION)


@pytest.mark.parametrize("kernel", [1, 3, 9])
def test_a_kernel_has_a_tap_for_each_token_around_the_middle(kernel: int) -> None:
    drawing = ElementTree.fromstring(draw_kernel(kernel, 9))
    track, *taps = drawing.iter("rect")
    assert len(taps) == kernel
    assert [tap.get("class") for tap in taps].index("tap middle") == kernel // 2
    middle = float(taps[kernel // 2].attrib["x"]) + float(taps[kernel // 2].attrib["width"]) / 2
    assert middle == float(track.attrib["x"]) + float(track.attrib["width"]) / 2
