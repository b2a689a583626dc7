from typing import Any
from unittest.mock import Mock

import pytest

from formwright.space import Choice, Expressions, Part, Record, Repeat, Switch
from formwright.space.outline import Line, outline
from formwright.space.zoo import SPACES, load_space


def lines(part: Part[Any]) -> list[Line]:
    return list(outline(part))


def test_choices_and_records_are_outlined() -> None:
    assert lines(Choice((2, "four", None))) == [Line("", (2, "four", None))]
    part = Record.of(size=Record.of(heads=Choice((2, 4)), width=Choice((8,))), depth=Choice((1, 2)))
    assert lines(part) == [Line("size.heads", (2, 4)), Line("size.width", (8,)), Line("depth", (1, 2))]
    assert lines(Record.of()) == []


def test_a_switch_lists_its_cases_and_then_what_each_brings() -> None:
    part = Record.of(
        mixer=Switch.of(sa=Choice(("sdp", "wma")), conv=Record.of(kernel=Choice((3, 5))), none=Record.of())
    )
    assert lines(part) == [
        Line("mixer", ("sa", "conv", "none")),
        Line("mixer=sa", ("sdp", "wma")),
        Line("mixer=conv.kernel", (3, 5)),
    ]


@pytest.mark.parametrize("times", [4, (2, 4)])
def test_tied_members_are_numbered_by_group(times: int | tuple[int, ...]) -> None:
    lengths = (times,) if isinstance(times, int) else times
    assert lines(Record.of(layers=Repeat(Choice((2, 4)), times, tied=2))) == [
        Line("layers.length", lengths, "in groups of 2 that share a choice"),
        Line("layers[0..1]", (2, 4)),
    ]


def test_repetitions_are_outlined() -> None:
    assert lines(Record.of(layers=Repeat(Choice((2, 4)), 6))) == [Line("layers[0..5]", (2, 4))]
    part = Record.of(layers=Repeat(Choice((2, 4)), (1, 3)))
    assert lines(part) == [Line("layers.length", (1, 3)), Line("layers[0..2]", (2, 4))]
    assert lines(Repeat(Choice((2, 4)), 0)) == []


def test_formulas_and_foreign_parts_are_counted() -> None:
    part = Expressions(3, least_inputs=1, most_inputs=2)
    (line,) = lines(Record.of(formula=part))
    assert (line.where, line.options) == ("formula", ())
    assert line.remark == f"{part.count():,} formulas of up to 3 operations over 1 to 2 inputs"
    other = Mock(spec=Part)
    other.count.return_value = 12_345
    assert lines(Record.of(other=other)) == [Line("other", (), "12,345 values")]


def test_the_published_space_reads_like_its_table() -> None:
    assert [(line.where, line.options) for line in outline(load_space("flexibert").root)] == [
        ("layers.length", (2, 4)),
        ("layers[0..1].operation", ("sa", "lt", "dsc")),
        ("layers[0..1].operation=sa", ("sdp", "wma")),
        ("layers[0..1].operation=lt", ("dft", "dct")),
        ("layers[0..1].operation=dsc", (5, 9)),
        ("layers[0..1].heads", (2, 4)),
        ("layers[0..1].hidden", (128, 256)),
        ("layers[0..1].feed_forward.width", (512, 1024)),
        ("layers[0..1].feed_forward.depth", (1, 3)),
    ]


@pytest.mark.parametrize("name", SPACES.names())
def test_every_published_space_has_an_outline(name: str) -> None:
    found = list(outline(load_space(name).root))
    assert found
    assert len({line.where for line in found}) == len(found)
    assert all(line.options or line.remark for line in found)
