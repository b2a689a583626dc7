"""The numbers of NAS-BERT, and the promises that its docstring makes."""

import inspect

import pytest
from tests.space.zoo.test_chains import teacher

from formwright.pipeline.blocks_train import TrainBlocks
from formwright.recipes import RECIPES
from formwright.search.chain_costs import BINS, LEAST
from formwright.space.zoo import CARDS
from formwright.space.zoo.chains import REAL, chains, scaled
from formwright.space.zoo.nas_bert import BLOCK, PUBLISHED

NAS_BERT = RECIPES.get("nas-bert")
BLOCKS: TrainBlocks = NAS_BERT(sizes="5M").of_kind(TrainBlocks)[0]
WORDS = " ".join(str(inspect.getdoc(inspect.getmodule(NAS_BERT.compose))).split())


def test_the_published_numbers() -> None:
    assert (BLOCKS.bins, BLOCKS.least) == (BINS, LEAST)
    menu = scaled(CARDS.get("bert-base"))
    assert (menu.widths, menu.blocks, menu.layers) == (PUBLISHED.widths, PUBLISHED.blocks, PUBLISHED.layers)


@pytest.mark.parametrize("promise", [f"{BLOCKS.candidates:,} candidates", f"{BLOCK.count():,}", "ten along each"])
def test_what_the_docstring_says_is_what_is_done(promise: str) -> None:
    assert promise in WORDS


def test_small_models_have_as_many_candidates_as_it_says() -> None:
    menu = scaled(teacher(384, 6))
    assert (menu.blocks, menu.layers, menu.widths[0], menu.widths[-1]) == (3, 4, 96, 384)
    assert f"{sum(1 for _ in chains(menu)):,} candidates each" in WORDS


def test_layers_are_updated_as_often_as_it_says() -> None:
    menu = scaled(teacher(384, 6))
    drawn = BLOCKS.paths * BLOCKS.steps * (BLOCKS.rounds + 1)
    assert f"about {drawn // (len(menu.widths) * len(REAL))} times in all" in WORDS
    assert f"{BLOCKS.steps} steps between two rounds" in WORDS


def test_it_is_a_recipe_that_the_command_compress_runs() -> None:
    assert NAS_BERT.command == "compress"
    assert [stage.NAME for stage in NAS_BERT(sizes=["5M", "8ms"])] == [
        "source",
        "operation-times",
        "bases",
        "blocks",
        "choices",
        "students",
    ]
