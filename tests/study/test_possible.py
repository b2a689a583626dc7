"""Which limits can never be kept."""

import pytest

from formwright.core.errors import IllegalInput
from formwright.core.records import Objective
from formwright.study.possible import refuse_impossible_bounds


def limits(*texts: str) -> list[Objective]:
    return [Objective.parse(text) for text in texts]


@pytest.mark.parametrize(
    "texts",
    [
        (),
        ("accuracy>=1.0",),
        ("accuracy>=0.9", "accuracy<=0.9"),
        ("matthews>=-0.5",),
        ("perplexity<=1",),
        ("bleu>=40",),
        ("params>=5", "params<=6", "params<=7"),
        ("accuracy<=2",),
    ],
)
def test_what_some_result_keeps_is_allowed(texts: tuple[str, ...]) -> None:
    refuse_impossible_bounds(limits(*texts))


@pytest.mark.parametrize(
    "texts",
    [
        ("accuracy>=1.01",),
        ("matthews<=-1.5",),
        ("perplexity<=0.5",),
        ("params<=-1",),
        ("params>=6", "params<=9", "params<=5"),
        ("params>=1", "params<=5", "params>=7"),
    ],
)
def test_what_no_result_keeps_is_refused(texts: tuple[str, ...]) -> None:
    with pytest.raises(IllegalInput, match=texts[0].split("=")[0][:-1]):
        refuse_impossible_bounds(limits(*texts))
