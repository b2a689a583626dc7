import pytest

from formwright.arch.card import Card
from formwright.arch.layers import Block, Stack, TokenEmbedding
from formwright.arch.ops import Attention
from formwright.core.errors import IllegalInput, UnknownName
from formwright.core.protocols import Searcher
from formwright.core.records import Objective
from formwright.search import SEARCHERS, make_searcher, option_names
from formwright.search.evolution import RegularizedEvolution
from formwright.search.halving import Halving
from formwright.search.make import trains_in_slices, usual_searcher
from formwright.search.nsga2 import Nsga2
from formwright.space import Choice, Fields, Record, Space
from formwright.testing.spaces import large, small

GOAL = (Objective.parse("accuracy:max"),)


@pytest.mark.parametrize("name", SEARCHERS.names())
def test_every_name_makes_a_searcher(name: str) -> None:
    assert isinstance(make_searcher(name, small(), GOAL), Searcher)


def test_names_are_those_of_the_command_line() -> None:
    assert {"random", "regularized-evolution", "nsga2", "halving", "local", "tpe", "optuna:tpe"} <= set(
        SEARCHERS.names()
    )


def test_two_searchers_train_in_slices() -> None:
    assert {name for name in SEARCHERS.names() if trains_in_slices(name)} == {"halving", "hurdles"}
    with pytest.raises(UnknownName):
        trains_in_slices("hurdle")


def test_options_and_budgets_reach_the_searcher() -> None:
    evolution = make_searcher("regularized-evolution", small(), GOAL, trials=40, tournament=7)
    assert isinstance(evolution, RegularizedEvolution)
    assert (evolution.population, evolution.tournament) == (10, 7)
    nsga2 = make_searcher("nsga2", small(), list(GOAL), trials=100)
    assert isinstance(nsga2, Nsga2)
    assert (nsga2.population, nsga2.objectives) == (10, GOAL)
    halving = make_searcher("halving", small(), GOAL, steps=54)
    assert isinstance(halving, Halving)
    assert halving.rungs == (2, 6, 18, 54)


def test_limits_reach_the_searcher() -> None:
    def legal(card: object) -> bool:
        return False

    searcher = make_searcher("nsga2", small(), GOAL, legal)
    assert isinstance(searcher, Nsga2)
    assert searcher.legal is legal


def test_options_have_names() -> None:
    assert option_names("regularized-evolution") == ["population", "tournament"]
    assert option_names("halving") == ["min_steps", "max_steps", "eta"]
    assert option_names("tpe") == ["startup"]
    assert option_names("local") == []


def test_all_faults_of_the_options_are_told_at_once() -> None:
    with pytest.raises(IllegalInput) as caught:
        make_searcher("nsga2", small(), GOAL, populaton=5, colour="red", population=0)
    message = str(caught.value)
    assert "the searcher 'nsga2' has no option 'populaton'. Nearest: 'population'." in message
    assert "has no option 'colour'" in message
    assert "population is 0" in message


def test_an_option_of_the_searcher_inside_is_told_where_it_belongs() -> None:
    told = r"no option 'coordinates'. 'boshnas', which it asks, has it: set options={\"coordinates\": VALUE}"
    with pytest.raises(IllegalInput, match=told):
        make_searcher("coarse-to-fine", small(), GOAL, coordinates="one-hot")
    with pytest.raises(IllegalInput, match=r"no option 'coordinates'\. It has: levels"):
        make_searcher("coarse-to-fine", small(), GOAL, searcher="random", coordinates="one-hot")


def test_an_unknown_searcher_has_a_nearest_name() -> None:
    with pytest.raises(UnknownName, match="Nearest: 'regularized-evolution'"):
        make_searcher("regevo", small(), GOAL)


def test_the_usual_searcher_depends_on_goals_and_space() -> None:
    assert usual_searcher(small(), 1) == "boshnas"
    assert usual_searcher(_vocabularies(), 1) == "forest"
    assert usual_searcher(large(), 1) == "regularized-evolution"
    assert usual_searcher(small(), 2) == usual_searcher(large(), 3) == "nsga2"


def _vocabularies() -> Space:
    """Return a space whose designs all have the same layers."""

    def build(design: Fields) -> Card:
        return Card(encoder=Stack(TokenEmbedding(design["vocabulary"], 8), (Block(8, Attention(2, 4), (16,)),)))

    return Space("vocabularies", Record.of(vocabulary=Choice((50, 100, 200))), build)
