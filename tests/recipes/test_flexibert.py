from pathlib import Path
from typing import Any

import pytest
from tests.recipes.test_recipes import TEXT, studied

from formwright.core.errors import IllegalInput
from formwright.evaluate.context import Combine
from formwright.evaluate.inherited import Pretrained
from formwright.pipeline.search import Search
from formwright.pipeline.task_choice import TaskChoice
from formwright.recipes.flexibert import flexibert
from formwright.search.boshnas import Boshnas
from formwright.search.coarse_to_fine import CoarseToFine, usual_levels
from formwright.search.listing import Nearness
from formwright.space.zoo import load_space


def test_it_is_made_of_the_parts_of_the_paper(tmp_path: Path) -> None:
    made = studied(flexibert(TEXT), tmp_path)
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
    search = flexibert(TEXT).of_kind(Search)[0]
    assert search.searcher is not None
    assert search.searcher.levels is None  # type: ignore[attr-defined]
    assert usual_levels(load_space(search.space)) == paper


@pytest.mark.long
@pytest.mark.parametrize("space", ["flexibert-s1star", "flexibert-nano", "flexibert-s1"])
def test_it_searches_other_spaces_of_the_paper_too(space: str, tmp_path: Path) -> None:
    studied(flexibert(TEXT, space=space), tmp_path)


@pytest.mark.parametrize("task", ["digits", "pydoc/causal"])
def test_a_task_that_cannot_be_pretrained_for_is_refused(task: str, tmp_path: Path) -> None:
    with pytest.raises(IllegalInput, match=task):
        studied(flexibert(TaskChoice(task)), tmp_path)
