from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.recipes.test_recipes import study
from tests.study.cases import new_log

from formwright.core.errors import IllegalInput
from formwright.evaluate.combine import Combine
from formwright.evaluate.pretrained import Pretrained
from formwright.recipes.flexibert import FLEXIBERT
from formwright.search.boshnas.searcher import Boshnas
from formwright.search.hierarchy import CoarseToFine
from formwright.search.levels import usual_levels
from formwright.search.neighbours import Nearness
from formwright.space.zoo import load_space
from formwright.study.assemble import assemble, refuse_faulty


def test_it_is_made_of_the_parts_of_the_paper(tmp_path: Path) -> None:
    made = assemble(study(FLEXIBERT), new_log(tmp_path), tmp_path)
    assert made.space.count() == 3_317_817_600
    searcher: Any = made.searcher
    assert isinstance(searcher, CoarseToFine)
    assert (searcher.planned, searcher.patience, searcher.tolerance) == (60, 5, 1e-4)
    space = searcher._narrowed(0, [])
    assert space.count() == 9_312
    surrogate: Any = searcher._searcher(0, space)
    assert isinstance(surrogate, Boshnas)
    assert (surrogate.k1, surrogate.k2, surrogate.alpha, surrogate.beta) == (0.5, 0.5, 0.1, 0.1)
    assert (surrogate.second_order, surrogate.heteroscedastic) == (True, True)
    assert (surrogate.acquire, surrogate.coordinates) == ("gobi-nearest", "transformer2vec")
    assert isinstance(made.evaluator, Combine)
    (scores,) = made.evaluator.evaluators
    assert isinstance(scores, Pretrained)
    assert scores.inherited.least == 0.8
    assert isinstance(scores.inherited.distance, Nearness)


def test_its_levels_are_those_of_the_paper() -> None:
    paper = ({"layers": 2, "layers.feed_forward": 3}, {"layers.feed_forward": 3}, {})
    assert "levels" not in FLEXIBERT.options
    assert usual_levels(load_space(FLEXIBERT.space)) == paper


@pytest.mark.long
@pytest.mark.parametrize("space", ["flexibert-s1star", "flexibert-nano", "flexibert-s1"])
def test_it_searches_other_spaces_of_the_paper_too(space: str) -> None:
    refuse_faulty(replace(study(FLEXIBERT), space=space))


def test_a_task_without_text_is_refused() -> None:
    with pytest.raises(IllegalInput, match=r"designs for the task digits .* cannot be pretrained"):
        refuse_faulty(study(FLEXIBERT, "digits"))
