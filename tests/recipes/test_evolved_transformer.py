from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.recipes.test_recipes import study
from tests.study.cases import new_log

from formwright.core.errors import IllegalInput
from formwright.core.records import Budget, History
from formwright.core.rng import derive
from formwright.evaluate.combine import Combine
from formwright.evaluate.staged import Staged
from formwright.recipes.evolved_transformer import EVOLVED_TRANSFORMER
from formwright.search.first import First
from formwright.search.hurdles import Hurdles
from formwright.space import Space
from formwright.space.zoo.evolved_transformer import NANO, PUBLISHED, SMALL, SPACE, Menu, transformer
from formwright.study.assemble import assemble, make_trainer, refuse_faulty


def test_it_is_made_of_the_parts_of_the_paper(tmp_path: Path) -> None:
    made = assemble(study(EVOLVED_TRANSFORMER, "translation"), new_log(tmp_path), tmp_path)
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
    config = replace(study(EVOLVED_TRANSFORMER, "translation"), **change)
    refuse_faulty(config)
    made: Any = assemble(config, new_log(tmp_path), tmp_path)
    assert made.evaluator.evaluators[0].trainer.task.metrics == ("perplexity", "same-text")
    assert make_trainer(study(EVOLVED_TRANSFORMER, "translation"), 9).task.metrics == ("perplexity", "same-text")


def test_the_search_begins_with_the_transformer(tmp_path: Path) -> None:
    made = assemble(study(EVOLVED_TRANSFORMER, "translation"), new_log(tmp_path), tmp_path)
    request = made.searcher.ask(History(()), derive(0))
    assert request.card == NANO.card(transformer(SMALL))
    assert request.budget == Budget.full()


@pytest.mark.parametrize(("space", "menu"), [(NANO, SMALL), (SPACE, PUBLISHED)])
def test_each_space_begins_with_its_own_transformer(space: Space, menu: Menu) -> None:
    (first,) = EVOLVED_TRANSFORMER.first_of(space.name)
    assert space.card(space.from_json(first)) == space.card(transformer(menu))
    assert EVOLVED_TRANSFORMER.first_of("flexibert") == ()


def test_a_task_that_is_not_written_is_refused() -> None:
    with pytest.raises(
        IllegalInput, match=r"needs a design of family encoder.*; this card is of family encoder-decoder"
    ):
        refuse_faulty(study(EVOLVED_TRANSFORMER))
