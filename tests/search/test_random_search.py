import pytest

from formwright.core.errors import IllegalInput
from formwright.core.records import Objective
from formwright.search.random_search import RandomSearch
from formwright.search.unseen import Legal, anything
from formwright.space import Space
from formwright.testing.loop import run
from formwright.testing.objective import Toy
from formwright.testing.searcher_contract import SearcherContract
from formwright.testing.spaces import large, small


class TestRandomSearch(SearcherContract):
    def make(self, space: Space, objectives: tuple[Objective, ...], legal: Legal = anything) -> RandomSearch:
        return RandomSearch(space, objectives, legal)


def depths(searcher: RandomSearch) -> list[int]:
    return [len(trial.request.design["layers"]) for trial in run(searcher, Toy(), 40).trials]  # type: ignore[index]


def test_designs_are_equally_likely_unless_genes_are() -> None:
    assert depths(RandomSearch(large())).count(12) == 40
    assert set(depths(RandomSearch(large(), by="gene"))) == {4, 8, 12}


def test_what_it_cannot_draw_by_is_refused() -> None:
    with pytest.raises(IllegalInput, match="by is 'luck'; it must be 'design' or 'gene'"):
        RandomSearch(small(), by="luck")  # type: ignore[arg-type]
