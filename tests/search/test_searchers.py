import hashlib
import json
import pickle
from dataclasses import dataclass
from typing import Any

import pytest
from numpy.random import Generator

from formwright.arch.card import Card
from formwright.arch.embeddings import TokenEmbedding
from formwright.arch.layers import Block, Stack
from formwright.arch.ops import Attention
from formwright.core.codec import range_faults
from formwright.core.errors import IllegalDesign, IllegalInput, UnknownName
from formwright.core.options import PartReader, PartWriter, option
from formwright.core.protocols import CardLike, Searcher
from formwright.core.records import History, Objective, Observation, Request
from formwright.search import SEARCHERS, make_searcher, option_names, searcher
from formwright.search.baselines import RandomSearch
from formwright.search.evolution import Nsga2, RegularizedEvolution
from formwright.search.rungs import Halving
from formwright.search.searchers import SearcherPart, usual_searcher
from formwright.space import Choice, Fields, Record, Space
from formwright.testing.toy_problem import large, run, small

GOAL = (Objective.parse("accuracy:max"),)


@pytest.mark.parametrize("name", SEARCHERS.names())
def test_every_name_makes_a_searcher(name: str) -> None:
    assert isinstance(make_searcher(name, small(), GOAL), Searcher)


def test_names_of_searchers_and_options() -> None:
    assert {"random", "regularized-evolution", "nsga2", "halving", "local", "tpe", "optuna:tpe"} <= set(
        SEARCHERS.names()
    )
    assert {name for name in SEARCHERS.names() if searcher(name).trains_in_slices} == {"halving", "hurdles"}
    assert option_names("regularized-evolution") == ["population", "tournament"]
    assert option_names("halving") == ["min_steps", "max_steps", "eta"]
    assert option_names("tpe") == ["startup"]
    assert option_names("local") == []


def test_options_budgets_and_limits_reach_the_searcher() -> None:
    evolution = make_searcher("regularized-evolution", small(), GOAL, trials=40, tournament=7)
    assert isinstance(evolution, RegularizedEvolution)
    assert (evolution.population, evolution.tournament) == (10, 7)
    nsga2 = make_searcher("nsga2", small(), list(GOAL), trials=100)
    assert isinstance(nsga2, Nsga2)
    assert (nsga2.population, nsga2.objectives) == (10, GOAL)
    halving = make_searcher("halving", small(), GOAL, steps=54)
    assert isinstance(halving, Halving)
    assert halving.rungs == (2, 6, 18, 54)

    def legal(card: object) -> bool:
        return False

    made = make_searcher("nsga2", small(), GOAL, legal)
    assert isinstance(made, Nsga2)
    assert made.legal is legal


def test_all_faults_of_the_options_are_told_at_once() -> None:
    with pytest.raises(IllegalDesign) as caught:
        make_searcher("nsga2", small(), GOAL, populaton=5, colour="red", population="many")
    assert {fault.where for fault in caught.value.faults} == {"populaton", "colour", "population"}
    assert "'population'" in str(caught.value.faults[0])


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("regularized-evolution", {"population": 0, "tournament": 1.5}),
        ("nsga2", {"population": 1, "crossover": 2}),
        ("op-nas", {"population": 0, "children": 1.5, "alpha": -1, "guided": "no"}),
        ("halving", {"eta": 1}),
        ("hurdles", {"population": 0, "batch": True, "eta": 1}),
        ("linas", {"population": 1, "explore": 1.5, "initial": 0, "batch": 0, "predictor": "linear"}),
        ("reinforce", {"learning_rate": 2, "entropy": -1, "decay": "x", "hidden": 0}),
        ("gp-bo", {"coordinates": "polar", "acquisition": "pi", "initial": 1}),
        ("forest", {"coordinates": "polar", "trees": 1, "initial": 0}),
        ("bananas", {"coordinates": "polar", "members": 1, "initial": 0, "parents": -1}),
        (
            "boshnas",
            {"initial": 0, "k1": -1, "beta": 2, "second_order": "yes", "coordinates": "two-hot", "acquire": "luck"},
        ),
    ],
)
def test_every_illegal_value_is_named(name: str, options: dict[str, Any]) -> None:
    for given, value in options.items():
        with pytest.raises(IllegalDesign) as caught:
            make_searcher(name, small(), GOAL, **{given: value})
        (fault,) = caught.value.faults
        assert fault.where == given
        with pytest.raises(IllegalDesign, match=given):
            SEARCHERS.get(name)(small(), GOAL, **{given: value})


@pytest.mark.parametrize(
    ("name", "options", "fault"),
    [
        ("halving", {"min_steps": 9, "max_steps": 3}, r"max_steps is 3; .* at least 9"),
        ("hurdles", {"min_steps": 9, "max_steps": 3}, r"max_steps is 3; .* at least 9"),
        ("boshnas", {"alpha": 0.6, "beta": 0.6}, r"alpha \+ beta is 1\.2"),
    ],
)
def test_values_must_fit_together(name: str, options: dict[str, Any], fault: str) -> None:
    with pytest.raises((IllegalInput, IllegalDesign), match=fault):
        make_searcher(name, small(), GOAL, **options)


@pytest.mark.parametrize(
    ("name", "trials", "expected"),
    [
        ("regularized-evolution", None, {"population": 50, "tournament": 10}),
        ("regularized-evolution", 1_000, {"population": 50, "tournament": 10}),
        ("regularized-evolution", 40, {"population": 10, "tournament": 2}),
        ("regularized-evolution", 1, {"population": 4, "tournament": 2}),
        ("nsga2", None, {"population": 40}),
        ("nsga2", 200, {"population": 20}),
        ("nsga2", 3, {"population": 4}),
        ("op-nas", None, {"population": 20, "parents": 5, "children": 2}),  # a study that ends by time may be short
        ("op-nas", 760, {"population": 100, "parents": 5, "children": 5}),
        ("op-nas", 100, {"population": 20, "parents": 5, "children": 2}),
        ("op-nas", 1, {"population": 4, "parents": 2, "children": 1}),
        *[
            (name, trials, {"initial": initial})
            for name in ("gp-bo", "forest", "bananas", "boshnas", "linas")
            for trials, initial in ((None, 12), (1_000, 12), (60, 12), (30, 6), (20, 4), (1, 3))
        ],
    ],
)
def test_defaults_depend_on_the_number_of_trials(name: str, trials: int | None, expected: dict[str, int]) -> None:
    assert SEARCHERS.get(name).for_budget(trials, None) == expected  # type: ignore[attr-defined]


def test_faults_of_the_searcher_inside_are_told_with_their_path() -> None:
    with pytest.raises(IllegalDesign, match=r"searcher\.cordinates: .*'coordinates'"):
        make_searcher("coarse-to-fine", small(), GOAL, searcher={"name": "boshnas", "cordinates": "one-hot"})


@pytest.mark.parametrize("inner", [{"name": "boshnas", "beta": 2.0}, searcher("boshnas", beta=2.0)])
def test_a_value_out_of_range_of_the_searcher_inside_is_told_with_its_path(inner: Any) -> None:
    with pytest.raises(IllegalDesign) as caught:
        make_searcher("coarse-to-fine", small(), GOAL, searcher=inner)
    assert [fault.where for fault in caught.value.faults] == ["searcher.beta"]


def test_options_chosen_in_python_are_checked_by_name_at_once() -> None:
    with pytest.raises(UnknownName, match="Nearest: 'population'"):
        searcher("nsga2", populaton=5)
    with pytest.raises(UnknownName, match="regevo"):
        searcher("regevo")


@dataclass(frozen=True)
class OwnSearch:
    """A searcher as a user would write it."""

    space: Any
    goals: Any
    legal: Any
    every: int = option(2, "trials between mutations", least=1)

    def ask(self, history: History, rng: Generator) -> Request:
        return RandomSearch(self.space).ask(history, rng)


class PlainSearch(OwnSearch):
    """A searcher with a constructor instead of fields."""

    def __init__(self, space: Any, objectives: Any, legal: Any, depth: int, width: float = 0.5) -> None:
        super().__init__(space, objectives, legal, depth)


def test_a_class_of_the_users_own_is_a_part_too() -> None:
    part = searcher(OwnSearch, every=5)
    made = part.bind(small(), GOAL)
    assert isinstance(made, OwnSearch)
    assert (made.every, made.goals, part.name) == (5, GOAL, "OwnSearch(every=5)")
    assert pickle.loads(pickle.dumps(part)) == part
    assert PartWriter().value(part) == {"python": f"{__name__}:OwnSearch(every=5)"}
    assert [fault.where for fault in range_faults(searcher(OwnSearch, every=0))] == ["every"]
    assert option_names(PlainSearch) == ["depth", "width"]
    assert isinstance(searcher(PlainSearch, depth=3).bind(small(), GOAL), PlainSearch)


def test_options_are_read_and_written_as_json() -> None:
    reader = PartReader()
    part = reader.read(SearcherPart, {"name": "nsga2", "population": 7})
    assert (part, reader.faults) == (searcher("nsga2", population=7), [])
    assert PartWriter().value(part) == {"name": "nsga2", "population": 7}
    assert PartWriter(whole=True).value(part) == {"name": "nsga2", "population": 7, "crossover": 0.9}
    assert pickle.loads(pickle.dumps(part)) == part


def test_an_unknown_searcher_has_a_nearest_name() -> None:
    with pytest.raises(UnknownName, match="Nearest: 'regularized-evolution'"):
        make_searcher("regevo", small(), GOAL)


def test_the_usual_searcher_depends_on_goals_and_space() -> None:
    assert usual_searcher(small(), 1) == "boshnas"
    assert usual_searcher(_vocabularies(), 1) == "forest"
    assert usual_searcher(large(), 1) == "regularized-evolution"
    assert usual_searcher(small(), 2) == usual_searcher(large(), 3) == "nsga2"
    assert usual_searcher(_foreign(), 1) == "forest"


def _vocabularies() -> Space:
    """Return a space whose designs all have the same layers."""

    def build(design: Fields) -> Card:
        return Card(encoder=Stack(TokenEmbedding(design["vocabulary"], 8), (Block(8, Attention(2, 4), (16,)),)))

    return Space("vocabularies", Record.of(vocabulary=Choice((50, 100, 200))), build)


@dataclass(frozen=True)
class ForeignCard:
    """A card of the user's own class: a digest and JSON data, and nothing else that a searcher could read."""

    width: int
    depth: int
    kind: str

    @property
    def digest(self) -> str:
        return hashlib.sha256(json.dumps(self.to_json()).encode()).hexdigest()

    def to_json(self) -> Any:
        return [self.width, self.depth, self.kind]


class ForeignScore:
    def evaluate(self, request: Request, _: object) -> Observation:
        card = request.card
        return Observation({"accuracy": card.width / (card.depth + 1) + (card.kind == "b")})


def _foreign() -> Space:
    root = Record.of(width=Choice((1, 2, 3, 4)), depth=Choice((1, 2, 3)), kind=Choice(("a", "b")))
    return Space("foreign", root, lambda design: ForeignCard(**{name: design[name] for name in design}))  # type: ignore


@pytest.mark.parametrize("name", sorted(set(SEARCHERS.names()) - {"largest-first", "op-nas"}))
def test_searchers_work_with_cards_of_another_class(name: str) -> None:
    made = make_searcher(name, _foreign(), GOAL, trials=12, steps=27)
    trials = run(made, ForeignScore(), 12).trials
    assert all(isinstance(trial.request.card, CardLike) for trial in trials)
    if not searcher(name).trains_in_slices:
        assert len({trial.request.card.digest for trial in trials}) == 12


@pytest.mark.parametrize("options", [{"coordinates": "transformer2vec-ordered"}, {"acquire": "exhaustive"}])
def test_boshnas_falls_back_to_one_hot_coordinates(options: dict[str, str]) -> None:
    fallback, one_hot = (
        run(make_searcher("boshnas", _foreign(), GOAL, trials=12, **{**options, **more}), ForeignScore(), 8)
        for more in ({}, {"coordinates": "one-hot"})
    )
    assert fallback == one_hot


@pytest.mark.parametrize(("name", "instead"), [("largest-first", "'random'"), ("op-nas", "'regularized-evolution'")])
def test_a_searcher_that_needs_formwright_cards_names_one_that_does_not(name: str, instead: str) -> None:
    with pytest.raises(IllegalInput) as caught:
        run(make_searcher(name, _foreign(), GOAL, trials=12), ForeignScore(), 1)
    assert repr(name) in str(caught.value)
    assert instead in str(caught.value)


def test_a_class_that_cannot_be_a_searcher_is_refused() -> None:
    class NoArguments:
        def ask(self, history: Any, rng: Any) -> None: ...

    class NeedsWidth(NoArguments):
        def __init__(self, space: Any, objectives: Any, legal: Any, width: int) -> None: ...

    for wrong, named in (
        (NeedsWidth, "width"),
        (dict, "ask"),
        (NoArguments, "objectives"),
        (lambda space: None, "objectives"),
    ):
        with pytest.raises(IllegalInput, match=named):
            searcher(wrong)


def test_a_whole_number_beyond_64_bits_is_refused_before_a_search() -> None:
    with pytest.raises(IllegalDesign, match="initial"):
        make_searcher("boshnas", small(), GOAL, initial=10**26)
