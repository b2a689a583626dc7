from xml.etree import ElementTree

import numpy as np

from formwright.report.svg_operations import draw_operations
from formwright.search.priorities import OperationTable

TABLE = OperationTable(
    ("neg", "softmax", "matmul"), np.array([[0.5, -1.0, 0.0], [2.0, 0.25, 0.1]]), np.array([[3, 1, 0], [0, 2_000, 1]])
)


def drawn(table: OperationTable = TABLE) -> ElementTree.Element:
    return ElementTree.fromstring(draw_operations(table))


def test_every_cell_tells_score_and_count() -> None:
    titles = [title.text for title in drawn().iter("title")]
    assert titles == [
        "Place 1, neg: +0.50 in 3 formulas",
        "Place 1, softmax: -1.00 in 1 formula",
        "Place 1, matmul: never tried",
        "Place 2, neg: never tried",
        "Place 2, softmax: +0.25 in 2,000 formulas",
        "Place 2, matmul: +0.10 in 1 formula",
    ]
    words = [one.text for one in drawn().iter("text")]
    assert words[:6] == ["place", "neg", "softmax", "matmul", "1", "2"]
    assert words[6:10] == ["+0.50", "3", "-1.00", "1"]


def test_colours_follow_sign_and_size_of_what_was_tried() -> None:
    colours = [cell.attrib["style"] for cell in drawn().iter("rect") if cell.get("class") == "cell"]
    assert "var(--better) 31%" in colours[0]
    assert "var(--worse) 62%" in colours[1], "the largest of those that were tried"
    assert "var(--better) 15.5%" in colours[2]
    assert sum(cell.get("class") == "untried" for cell in drawn().iter("rect")) == 2


def test_equal_scores_have_no_colour() -> None:
    flat = OperationTable(("neg",), np.zeros((1, 1)), np.ones((1, 1), dtype=np.int64))
    assert " 0%" in next(cell.attrib["style"] for cell in drawn(flat).iter("rect"))
