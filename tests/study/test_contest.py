import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.evaluate.fake_table import fake_benchmark

from formwright.core.errors import IllegalInput, MissingExtra
from formwright.core.protocols import Searcher
from formwright.core.records import Budget, History, Request
from formwright.core.rng import derive
from formwright.evaluate.benchmark import Benchmark
from formwright.search import SEARCHERS, SpaceExhausted, option_names
from formwright.search.baselines import RandomSearch
from formwright.search.rungs import Halving
from formwright.study import contest as module
from formwright.study.contest import (
    NOTHING,
    Contest,
    ContestFile,
    Method,
    SearchRun,
    all_methods,
    find_methods,
    replay,
    standings,
    usual_methods,
)

BENCHMARK = fake_benchmark()
CARDS = [card for card in map(BENCHMARK.space.card, BENCHMARK.space.enumerate()) if BENCHMARK.legal(card)]
SCORES = BENCHMARK.scores()


@dataclass(frozen=True)
class Scripted(Method):
    """A method that asks for certain rows after certain steps, and then for no more."""

    script: tuple[tuple[int, int | None], ...] = field(default=(), kw_only=True)
    seen: list[History] = field(default_factory=list, compare=False)

    def make(self, benchmark: Benchmark, evaluations: int) -> Searcher:
        return _Reader(self.script, self.seen)


@dataclass(frozen=True)
class _Reader:
    script: tuple[tuple[int, int | None], ...]
    seen: list[History]

    def ask(self, history: History, rng: np.random.Generator) -> Request:
        self.seen.append(history)
        number = len(history.trials)
        if number == len(self.script):
            raise SpaceExhausted("the end of the script")
        row, steps = self.script[number]
        return Request(CARDS[row], Budget(steps))


def scripted(*script: tuple[int, int | None]) -> Scripted:
    return Scripted("scripted", "random", script=script)


def best_after(rows: list[int]) -> list[int]:
    return [max(rows[: number + 1], key=lambda row: SCORES[row]) for number in range(len(rows))]


def test_the_best_so_far_is_followed() -> None:
    rows = [10, 50, 3, 120, 7, 199]
    found = replay(BENCHMARK, scripted(*[(row, None) for row in rows]), 0, len(rows))
    assert found.best == tuple(best_after(rows))
    assert (found.method, found.seed) == ("scripted", 0)
    assert replay(BENCHMARK, scripted((10, None), (10, None)), 0, 4).best == (10, 10, 10, 10)
    assert replay(BENCHMARK, scripted(), 0, 2).best == (NOTHING, NOTHING)
    worst, best = int(SCORES.argmin()), int(SCORES.argmax())
    assert replay(BENCHMARK, scripted((worst, None), (best, 10), (best, 10)), 0, 1).best == (worst,)
    assert replay(BENCHMARK, scripted((worst, None), (best, 10), (best, 20)), 0, 2).best == (worst, best)


def test_the_searcher_sees_what_the_table_says_as_in_a_study() -> None:
    method = scripted((10, None), (50, None))
    replay(BENCHMARK, method, 0, 2)
    (trial,) = method.seen[1].trials
    assert trial.observation.metrics["accuracy"] == SCORES[10]
    (method,) = find_methods(["random"])
    searcher = method.make(BENCHMARK, 3)
    first = searcher.ask(History(), derive(5, "ask", 0))
    assert replay(BENCHMARK, method, 5, 3).best[0] == BENCHMARK.row(first.card)


def test_evaluations_are_counted_by_their_steps() -> None:
    # two quarters and a half are one; going on from a half to the end costs the other half
    method = scripted((1, 5), (2, 5), (3, 10), (3, 20), (4, None), (5, None))
    found = replay(BENCHMARK, method, 0, 2)
    assert len(method.seen) == 5
    assert found.best[0] == 3  # half a training counts for more than a quarter
    assert found.best[1] in (3, 4)


def test_failed_trainings_are_paid_for_and_the_least_is_sought_where_the_objective_says_so() -> None:
    scores = BENCHMARK.table.validation.copy()
    scores[10] = np.nan
    failing = Benchmark(replace(BENCHMARK.table, validation=scores), BENCHMARK.space)
    method = scripted((10, None), (20, None), (30, None))
    assert replay(failing, method, 0, 2).best == (NOTHING, 20)
    assert method.seen[1].trials[0].state == "failed"
    lowest = Benchmark(
        replace(BENCHMARK.table, facts={**BENCHMARK.table.facts, "objective": "loss:min"}), BENCHMARK.space
    )
    worst, best = int(SCORES.argmin()), int(SCORES.argmax())
    assert replay(lowest, scripted((best, None), (worst, None)), 0, 2).best == (best, worst)


@pytest.mark.parametrize(
    "name",
    ["random", "regularized-evolution", "local", "nsga2", "halving", pytest.param("tpe", marks=pytest.mark.slow)],
)
def test_searchers_find_designs_of_the_table_and_repeat_themselves(name: str) -> None:
    (method,) = find_methods([name])
    first, again, other = (replay(BENCHMARK, method, seed, 15) for seed in (0, 0, 1))
    assert replace(first, seconds=0.0) == replace(again, seconds=0.0)
    assert first.best != other.best
    assert len(first.best) == 15
    assert SCORES[first.best[-1]] >= SCORES[first.best[0]]


def contest(load: Callable[[], Benchmark] = fake_benchmark, **changes: Any) -> Contest:
    return Contest(load, find_methods(["random", "local"]), **{"runs": 3, "evaluations": 5, **changes})


def keys(replays: list[SearchRun]) -> set[tuple[str, int]]:
    return {(one.method, one.seed) for one in replays}


def test_each_method_runs_with_each_seed_once() -> None:
    found = list(contest().replays())
    assert keys(found) == {(name, seed) for name in ("random", "local") for seed in range(3)}
    assert len(found) == 6
    before = list(contest(runs=2).replays())
    larger = contest()
    known = larger.known([*before, *before, replace(before[0], method="tpe"), replace(before[0], seed=7)])
    assert sorted(map(hash, known)) == sorted(map(hash, before))
    assert keys(list(larger.replays(known=known))) == {("random", 2), ("local", 2)}
    assert contest(evaluations=6).known(before) == []
    found = SearchRun("random", 3, (1, 2), 0.5)
    assert SearchRun.from_json({**asdict(found), "best": [1, 2]}) == found


@pytest.mark.slow
def test_processes_find_what_one_finds() -> None:
    load = partial(fake_benchmark, 150)
    alone, shared = (list(contest(load).replays(workers)) for workers in (1, 2))
    assert {(one.method, one.seed, one.best) for one in alone} == {(one.method, one.seed, one.best) for one in shared}


def test_every_searcher_is_a_method_that_is_found_once_and_can_be_made() -> None:
    names = [method.name for method in all_methods()]
    assert {"random", "regularized-evolution", "tpe", "halving"} <= set(names)
    assert not any(":" in name for name in names)
    assert len(set(names)) == len(names)
    for method in all_methods():
        assert method.searcher in SEARCHERS.names()
        assert hasattr(method.make(fake_benchmark(), 10), "ask")
    found = find_methods(["random", "local", "random"])
    assert [method.name for method in found] == ["random", "local"]
    with pytest.raises(IllegalInput, match=r"no method is called 'randon'\. Nearest: 'random'\. There are: .*local"):
        find_methods(["local", "randon"])


def test_variants_need_a_searcher_with_their_options(monkeypatch: pytest.MonkeyPatch) -> None:
    variants = {"random": {"by-gene": {"by": "gene"}, "wrong": {"colour": 1}}, "absent": {"a": {}}}
    monkeypatch.setattr(module, "_VARIANTS", variants)
    assert [method for method in all_methods() if "/" in method.name] == [
        Method("random/by-gene", "random", {"by": "gene"})
    ]
    made = find_methods(["random/by-gene"])[0].make(fake_benchmark(), 10)
    assert isinstance(made, RandomSearch)
    assert made.by == "gene"


def test_halving_asks_for_steps_that_the_table_has() -> None:
    searcher = Method("halving", "halving").make(fake_benchmark(), 10)
    assert isinstance(searcher, Halving)
    assert searcher.rungs == (5, 10, 20)
    for name, variants in module._VARIANTS.items():
        if name in SEARCHERS.names():
            for options in variants.values():
                assert set(options) <= set(option_names(name))


@pytest.mark.parametrize(
    ("marks", "rungs"), [((20,), (20,)), ((10, 20), (10, 20)), ((3, 10, 20), (10, 20)), ((5, 15, 45), (5, 15, 45))]
)
def test_rungs_are_the_marks_that_are_a_fixed_ratio_apart(marks: tuple[int, ...], rungs: tuple[int, ...]) -> None:
    options = module._rungs("halving", marks)
    benchmark = fake_benchmark()
    assert Halving(benchmark.space, (benchmark.objective,), **options).rungs == rungs


def test_what_is_slow_or_not_installed_is_not_usual(monkeypatch: pytest.MonkeyPatch) -> None:
    assert {"tpe", "random"} <= {method.name for method in usual_methods(fake_benchmark())}

    def make(name: str, *_: object, **__: object) -> object:
        if name in ("tpe", "cmaes"):
            raise MissingExtra("optuna", "optuna")
        return object()

    monkeypatch.setattr(module, "make_searcher", make)
    assert not {"tpe", "cmaes", "gp"} & {method.name for method in usual_methods(fake_benchmark())}


FIRST, SECOND = SearchRun("random", 0, (1, 2), 0.5), SearchRun("local", 1, (3, 3), 0.25)


@pytest.fixture
def file(tmp_path: Path) -> ContestFile:
    return ContestFile(tmp_path / "runs.jsonl", "a")


def test_what_is_kept_is_read_and_passed_on(file: ContestFile) -> None:
    assert file.read() == []
    assert list(file.keep(iter([FIRST]))) == [FIRST]
    for found in file.keep(iter([SECOND])):
        assert (file.read(), found) == ([FIRST, SECOND], SECOND), "it is written before it is passed on"


def test_searches_on_another_table_are_left_alone(tmp_path: Path) -> None:
    here, there = (ContestFile(tmp_path / "runs.jsonl", table) for table in ("a", "b"))
    list(here.keep(iter([FIRST])))
    list(there.keep(iter([SECOND])))
    assert (here.read(), there.read()) == ([FIRST], [SECOND])


def test_a_line_that_was_cut_short_is_forgotten(file: ContestFile) -> None:
    list(file.keep(iter([FIRST, SECOND])))
    file.path.write_bytes(file.path.read_bytes()[:-5])
    assert file.read() == [FIRST]
    list(file.keep(iter([SECOND])))
    assert file.read() == [FIRST, SECOND]


@pytest.mark.parametrize("kept", [0, 1, 5, 20])
def test_a_first_line_that_was_cut_short_is_forgotten(kept: int, file: ContestFile) -> None:
    list(file.keep(iter([FIRST])))
    file.path.write_bytes(file.path.read_bytes()[:kept])
    assert file.read() == []
    list(file.keep(iter([SECOND])))
    assert file.read() == [SECOND]


@pytest.mark.parametrize(
    "text",
    ["no JSON\n", "{}\n", "[1]\n", '{"table": "a", "method": "random"}\n', "one line of my notes", '{"tables": 3}'],
)
def test_other_files_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "runs.jsonl"
    path.write_text(text)
    with pytest.raises(IllegalInput, match=r"runs\.jsonl"):
        ContestFile(path, "a").read()


def test_a_file_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(IllegalInput, match=r"cannot write .*absent"):
        list(ContestFile(tmp_path / "absent" / "runs.jsonl", "a").keep(iter([FIRST])))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"method": 7}, "method must be a name"),
        ({"seed": "0"}, "seed is '0'"),
        ({"best": 3}, "best a list of rows"),
        ({"best": [1, 2.5]}, "a row is 2.5"),
        ({"best": [-2, 1]}, "a row is -2"),
        ({"best": [1, 10]}, "the row 10 is beyond the 10 rows of the table"),
        ({"seconds": None}, "seconds is None"),
        ({"seconds": 10**400}, "too large"),
        ({"more": 1}, "must have the fields"),
    ],
)
def test_a_line_that_is_no_search_is_refused(change: dict[str, Any], told: str, tmp_path: Path) -> None:
    file = ContestFile(tmp_path / "runs.jsonl", "a", 10)
    list(file.keep(iter([SearchRun("random", 0, (-1, 9), 0.5)])))
    with file.path.open("a") as more:
        more.write(json.dumps({"table": "a", **asdict(SECOND), **change}) + "\n")
    with pytest.raises(IllegalInput, match=rf"runs\.jsonl.*line 2: .*{told}"):
        file.read()


def test_a_line_of_many_brackets_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    path.write_text('{"table": ' + "[" * 100_000 + "\n")
    with pytest.raises(IllegalInput, match="line 1: "):
        ContestFile(path, "a").read()


def test_a_file_that_another_adds_to_is_refused_and_left_alone(file: ContestFile) -> None:
    first = file.keep(iter([FIRST, SECOND]))
    next(first)
    with pytest.raises(IllegalInput, match=r"another process works on .*runs\.jsonl; wait for it"):
        list(file.keep(iter([SECOND])))
    assert list(first) == [SECOND]
    assert file.read() == [FIRST, SECOND]
    assert list(file.keep(iter([]))) == []  # the lock ends with its holder


TEST = BENCHMARK.scores("test")
ORDER = [int(row) for row in np.argsort(-SCORES)]
BEST, WORST = ORDER[0], ORDER[-1]


def test_a_curve_is_the_mean_of_the_searches() -> None:
    searches = [SearchRun("a", 0, (WORST, 5, BEST), 1.0), SearchRun("a", 1, (WORST, WORST, 5), 3.0)]
    found = standings(BENCHMARK, searches)["a"]
    assert found["curve"] == pytest.approx(
        [SCORES[WORST], (SCORES[5] + SCORES[WORST]) / 2, (SCORES[BEST] + SCORES[5]) / 2]
    )
    assert found["final"] == found["curve"][-1]
    assert found["test"] == found["test_curve"][-1] == pytest.approx((TEST[BEST] + TEST[5]) / 2)
    assert found["test_curve"][0] == pytest.approx(TEST[WORST])
    assert (found["runs"], found["seconds"]) == (2, 2.0)
    assert found["rank"] == (1 + BENCHMARK.ranks[5]) / 2


def test_intervals_hold_the_mean_and_are_narrower_for_more_searches() -> None:
    rows = [ORDER[place] for place in range(0, 200, 5)]
    few, many = (
        standings(BENCHMARK, [SearchRun("a", seed, (row,), 0.0) for seed, row in enumerate(chosen)])["a"]
        for chosen in (rows[::8], rows)
    )
    for found in (few, many):
        low, high = found["interval"]
        assert low < found["final"] < high
        assert (found["curve_low"][-1], found["curve_high"][-1]) == (low, high)
        assert [found["test_curve_low"][-1], found["test_curve_high"][-1]] == found["test_interval"]
    widths = [found["interval"][1] - found["interval"][0] for found in (few, many)]
    assert widths[1] < widths[0] / 2
    # as wide as 90 % of a normal distribution with the error of the mean
    assert widths[1] == pytest.approx(2 * 1.645 * SCORES[rows].std() / 40**0.5, rel=0.15)


def test_the_best_method_comes_first_in_standings_of_plain_data() -> None:
    searches = [SearchRun(name, 0, (row,), 0.0) for name, row in (("c", 5), ("b", WORST), ("a", BEST))]
    assert list(standings(BENCHMARK, searches)) == ["a", "c", "b"]
    lowest = replace(BENCHMARK.table, facts={**BENCHMARK.table.facts, "objective": "loss:min"})
    assert list(standings(Benchmark(lowest, BENCHMARK.space), searches)) == ["b", "c", "a"]
    found = standings(BENCHMARK, [SearchRun("a", 0, (NOTHING, BEST), 0.0)])["a"]
    assert found["curve"] == [SCORES[WORST], SCORES[BEST]]
    found = standings(BENCHMARK, [SearchRun("a", 0, (WORST, BEST), 0.5)])
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_it_is_told_how_soon_one_of_the_best_was_found() -> None:
    sooner, later = (WORST, BEST, BEST, BEST), (WORST, WORST, WORST, BEST)
    never = (WORST,) * 4
    found = standings(BENCHMARK, [SearchRun("a", seed, rows, 0.0) for seed, rows in enumerate((sooner, later, never))])
    top = found["a"]["top"]
    assert top["designs"] == 1
    assert top["share"] == pytest.approx(2 / 3)
    assert top["evaluations"] == 4
    assert top["interval"] == [2, None]
    assert found["a"]["good"]["designs"] == 2  # 1 % of 200
    second = standings(BENCHMARK, [SearchRun("a", 0, (WORST, ORDER[1]), 0.0)])["a"]
    assert (second["top"]["share"], second["good"]["share"], second["good"]["evaluations"]) == (0, 1, 2)
    rarely = standings(BENCHMARK, [SearchRun("a", seed, rows, 0.0) for seed, rows in enumerate((sooner, never, never))])
    assert rarely["a"]["top"]["evaluations"] is None
