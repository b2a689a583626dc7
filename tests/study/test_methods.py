import pytest
from tests.evaluate.fake_table import fake_benchmark

from formwright.core.errors import IllegalInput, MissingExtra
from formwright.search import SEARCHERS, option_names
from formwright.search.baselines import RandomSearch
from formwright.search.halving import Halving
from formwright.study import contest
from formwright.study.contest import Method, all_methods, find_methods, usual_methods


def test_every_searcher_is_a_method_that_can_be_made() -> None:
    names = [method.name for method in all_methods()]
    assert {"random", "regularized-evolution", "tpe", "halving"} <= set(names)
    assert not any(":" in name for name in names)
    assert len(set(names)) == len(names)
    for method in all_methods():
        assert method.searcher in SEARCHERS.names()
        assert hasattr(method.make(fake_benchmark(), 10), "ask")


def test_variants_need_a_searcher_with_their_options(monkeypatch: pytest.MonkeyPatch) -> None:
    variants = {"random": {"by-gene": {"by": "gene"}, "wrong": {"colour": 1}}, "absent": {"a": {}}}
    monkeypatch.setattr(contest, "_VARIANTS", variants)
    assert [method for method in all_methods() if "/" in method.name] == [
        Method("random/by-gene", "random", {"by": "gene"})
    ]
    made = find_methods(["random/by-gene"])[0].make(fake_benchmark(), 10)
    assert isinstance(made, RandomSearch)
    assert made.by == "gene"


def test_the_options_of_every_variant_are_known_where_its_searcher_is() -> None:
    for name, variants in contest._VARIANTS.items():
        if name in SEARCHERS.names():
            for options in variants.values():
                assert set(options) <= set(option_names(name))


def test_names_are_found_once_each_in_their_order() -> None:
    found = find_methods(["random", "local", "random"])
    assert [method.name for method in found] == ["random", "local"]
    with pytest.raises(IllegalInput, match=r"no method is called 'randon'\. Nearest: 'random'\. There are: .*local"):
        find_methods(["local", "randon"])


def test_halving_asks_for_steps_that_the_table_has() -> None:
    searcher = Method("halving", "halving").make(fake_benchmark(), 10)
    assert isinstance(searcher, Halving)
    assert searcher.rungs == (5, 10, 20)


@pytest.mark.parametrize(
    ("marks", "rungs"), [((20,), (20,)), ((10, 20), (10, 20)), ((3, 10, 20), (10, 20)), ((5, 15, 45), (5, 15, 45))]
)
def test_rungs_are_the_marks_that_are_a_fixed_ratio_apart(marks: tuple[int, ...], rungs: tuple[int, ...]) -> None:
    options = contest._rungs("halving", marks)
    benchmark = fake_benchmark()
    assert Halving(benchmark.space, (benchmark.objective,), **options).rungs == rungs


def test_what_is_slow_or_not_installed_is_not_usual(monkeypatch: pytest.MonkeyPatch) -> None:
    assert {"tpe", "random"} <= {method.name for method in usual_methods(fake_benchmark())}

    def make(name: str, *_: object, **__: object) -> object:
        if name in ("tpe", "cmaes"):
            raise MissingExtra("optuna", "optuna")
        return object()

    monkeypatch.setattr(contest, "make_searcher", make)
    assert not {"tpe", "cmaes", "gp"} & {method.name for method in usual_methods(fake_benchmark())}
