from pathlib import Path
from typing import Any

import pytest
from tests.pipeline.cases import here
from tests.recipes.test_recipes import TEXT, searched, studied

from formwright.core.errors import IllegalInput
from formwright.core.records import Budget, History
from formwright.core.rng import derive
from formwright.evaluate.context import Combine
from formwright.evaluate.training import Staged
from formwright.pipeline.search import Search
from formwright.pipeline.task_choice import TaskChoice
from formwright.recipes.evolved_transformer import evolved_transformer
from formwright.search.baselines import First
from formwright.search.rungs import Hurdles
from formwright.space import Space
from formwright.space.zoo.evolved_transformer import NANO, PUBLISHED, SMALL, SPACE, CellMenu, transformer

PAIRS = TaskChoice("translation")


def test_it_is_made_of_the_parts_of_the_paper(tmp_path: Path) -> None:
    made = studied(evolved_transformer(PAIRS), tmp_path)
    assert made.space.name == "evolved-transformer-nano"
    first: Any = made.searcher
    assert isinstance(first, First)
    assert isinstance(first.searcher, Hurdles)
    assert (first.searcher.population, first.searcher.batch, first.searcher.rungs) == (20, 20, (12, 36, 108))
    assert isinstance(made.evaluator, Combine)
    (scores,) = made.evaluator.evaluators
    assert isinstance(scores, Staged)
    assert scores.trainer.task.metrics == ("perplexity",)  # nothing is written during a search


@pytest.mark.parametrize("change", [{"objectives": ("same-text:max",)}, {"limits": ("same-text>=0.1",)}])
def test_texts_are_written_in_a_search_that_is_about_them(change: dict[str, Any], tmp_path: Path) -> None:
    made: Any = studied(searched(evolved_transformer(PAIRS), **change), tmp_path)
    assert made.evaluator.evaluators[0].trainer.task.metrics == ("perplexity", "same-text")


def test_texts_are_written_in_the_end() -> None:
    made = evolved_transformer(PAIRS)
    setting = made.of_kind(Search)[0].setting(here(made), quickly=False)
    assert setting.trainer.task.metrics == ("perplexity", "same-text")


def test_the_search_begins_with_the_transformer(tmp_path: Path) -> None:
    made = studied(evolved_transformer(PAIRS), tmp_path)
    request = made.searcher.ask(History(()), derive(0))
    assert request.card == NANO.card(transformer(SMALL))
    assert request.budget == Budget.full()


@pytest.mark.parametrize(("space", "menu"), [(NANO, SMALL), (SPACE, PUBLISHED)])
def test_each_space_begins_with_its_own_transformer(space: Space, menu: CellMenu) -> None:
    (first,) = evolved_transformer(PAIRS, space=space.name).of_kind(Search)[0].first
    assert space.card(space.from_json(first)) == space.card(transformer(menu))
    assert evolved_transformer(PAIRS, space="flexibert").of_kind(Search)[0].first == ()


def test_a_task_that_is_not_written_is_refused(tmp_path: Path) -> None:
    with pytest.raises(IllegalInput, match=r"family encoder.*encoder-decoder"):
        studied(evolved_transformer(TEXT), tmp_path)
