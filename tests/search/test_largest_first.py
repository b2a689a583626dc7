import pytest

from formwright.core.errors import IllegalInput
from formwright.core.records import History, Objective
from formwright.core.rng import derive
from formwright.cost import params
from formwright.search.largest_first import LargestFirst, total_ranks
from formwright.search.unseen import Legal, anything
from formwright.space import Space
from formwright.testing.loop import outline, run
from formwright.testing.objective import Toy
from formwright.testing.searcher_contract import SearcherContract
from formwright.testing.spaces import large, small, tiny


class TestByParameters(SearcherContract):
    def make(self, space: Space, objectives: tuple[Objective, ...], legal: Legal = anything) -> LargestFirst:
        return LargestFirst(space, objectives, legal)


class TestByRank(SearcherContract):
    def make(self, space: Space, objectives: tuple[Objective, ...], legal: Legal = anything) -> LargestFirst:
        return LargestFirst(space, objectives, legal, by="rank")


def test_sizes_descend_from_the_largest_whatever_the_scores() -> None:
    space = small()
    cards = [space.card(design) for design in space.enumerate()]
    ranks = dict(zip([card.digest for card in cards], total_ranks(cards), strict=True))
    by_params = [params(one.card) for one in outline(run(LargestFirst(space), Toy(), 40))]  # type: ignore[arg-type]
    by_rank = [ranks[one.card.digest] for one in outline(run(LargestFirst(space, by="rank"), Toy(), 40))]
    assert by_params == sorted(map(params, cards), reverse=True)[:40]
    assert by_rank == sorted(ranks.values(), reverse=True)[:40]


def test_limits_are_kept_while_descending() -> None:
    space, most = small(), 0
    sizes = sorted({params(space.card(design)) for design in space.enumerate()})
    most = sizes[len(sizes) // 2]
    first = LargestFirst(space, legal=lambda card: params(card) <= most).ask(History(), derive(0))
    assert params(first.card) == most  # type: ignore[arg-type]


def test_a_space_that_cannot_be_listed_gives_large_designs() -> None:
    history = run(LargestFirst(large()), Toy(), 20)
    drawn = [params(large().card(large().sample(derive(seed)))) for seed in range(50)]
    assert min(params(one.card) for one in outline(history)) > sorted(drawn)[40]  # type: ignore[arg-type]


def test_an_unknown_size_is_refused() -> None:
    with pytest.raises(IllegalInput, match="'params' or 'rank'"):
        LargestFirst(tiny(), by="depth")  # type: ignore[arg-type]
