"""The numbers of NAS-BERT, and the promises that its docstring makes."""

import pytest
from tests.space.zoo.test_chains import teacher

from formwright.recipes import COMPRESSIONS, nas_bert
from formwright.recipes.nas_bert import NAS_BERT, SUMMARY
from formwright.search.shrinking import BINS, LEAST
from formwright.space.zoo import CARDS
from formwright.space.zoo.chains import REAL, chains
from formwright.space.zoo.nas_bert import BLOCK, PUBLISHED

WORDS = " ".join(str(nas_bert.__doc__).split())


def test_the_published_numbers() -> None:
    assert (NAS_BERT.bins, NAS_BERT.least) == (BINS, LEAST)
    menu = NAS_BERT.menu(CARDS.get("bert-base"))
    assert (menu.widths, menu.blocks, menu.layers) == (PUBLISHED.widths, PUBLISHED.blocks, PUBLISHED.layers)


@pytest.mark.parametrize("promise", [f"{NAS_BERT.candidates:,} candidates", f"{BLOCK.count():,}", "ten along each"])
def test_what_the_docstring_says_is_what_is_done(promise: str) -> None:
    assert promise in WORDS


def test_small_models_have_as_many_candidates_as_it_says() -> None:
    menu = NAS_BERT.menu(teacher(384, 6))
    assert (menu.blocks, menu.layers, menu.widths[0], menu.widths[-1]) == (3, 4, 96, 384)
    assert f"{sum(1 for _ in chains(menu)):,} candidates each" in WORDS


def test_layers_are_updated_as_often_as_it_says() -> None:
    menu = NAS_BERT.menu(teacher(384, 6))
    drawn = NAS_BERT.paths * NAS_BERT.round_steps * (NAS_BERT.rounds + 1)
    assert f"about {drawn // (len(menu.widths) * len(REAL))} times in all" in WORDS
    assert f"{NAS_BERT.round_steps} steps between two rounds" in WORDS


def test_it_is_listed() -> None:
    assert COMPRESSIONS.get("nas-bert") is SUMMARY
    assert SUMMARY.job == "compress"
