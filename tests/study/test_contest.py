from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from tests.evaluate.fake_table import fake_benchmark

from formwright.core.protocols import Searcher
from formwright.core.records import Budget, History, Request
from formwright.core.rng import derive
from formwright.evaluate.benchmark import Benchmark
from formwright.search import SpaceExhausted
from formwright.study.contest import NOTHING, Contest, Method, Replay, find_methods, replay

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


def test_the_searcher_sees_what_the_table_says() -> None:
    method = scripted((10, None), (50, None))
    replay(BENCHMARK, method, 0, 2)
    (trial,) = method.seen[1].trials
    assert trial.observation.metrics["accuracy"] == SCORES[10]


def test_evaluations_are_counted_by_their_steps() -> None:
    # two quarters and a half are one; going on from a half to the end costs the other half
    method = scripted((1, 5), (2, 5), (3, 10), (3, 20), (4, None), (5, None))
    found = replay(BENCHMARK, method, 0, 2)
    assert len(method.seen) == 5
    assert found.best[0] == 3  # half a training counts for more than a quarter
    assert found.best[1] in (3, 4)


def test_a_training_that_failed_is_paid_for_and_told() -> None:
    scores = BENCHMARK.table.validation.copy()
    scores[10] = np.nan
    failing = Benchmark(replace(BENCHMARK.table, validation=scores), BENCHMARK.space)
    method = scripted((10, None), (20, None), (30, None))
    assert replay(failing, method, 0, 2).best == (NOTHING, 20)
    assert method.seen[1].trials[0].state == "failed"


def test_the_least_is_sought_where_the_objective_says_so() -> None:
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


def test_a_search_is_what_a_study_would_do() -> None:
    (method,) = find_methods(["random"])
    searcher = method.make(BENCHMARK, 3)
    first = searcher.ask(History(), derive(5, "ask", 0))
    assert replay(BENCHMARK, method, 5, 3).best[0] == BENCHMARK.row(first.card)


def contest(load: Callable[[], Benchmark] = fake_benchmark, **changes: Any) -> Contest:
    return Contest(load, find_methods(["random", "local"]), **{"runs": 3, "evaluations": 5, **changes})


def keys(replays: list[Replay]) -> set[tuple[str, int]]:
    return {(one.method, one.seed) for one in replays}


def test_each_method_runs_with_each_seed() -> None:
    found = list(contest().replays())
    assert keys(found) == {(name, seed) for name in ("random", "local") for seed in range(3)}
    assert len(found) == 6


def test_known_searches_are_not_repeated() -> None:
    before = list(contest(runs=2).replays())
    larger = contest()
    known = larger.known([*before, *before, replace(before[0], method="tpe"), replace(before[0], seed=7)])
    assert sorted(map(hash, known)) == sorted(map(hash, before))
    assert keys(list(larger.replays(known=known))) == {("random", 2), ("local", 2)}
    assert contest(evaluations=6).known(before) == []
    found = Replay("random", 3, (1, 2), 0.5)
    assert Replay.from_json({**asdict(found), "best": [1, 2]}) == found


@pytest.mark.slow
def test_processes_find_what_one_finds() -> None:
    load = partial(fake_benchmark, 150)
    alone, shared = (list(contest(load).replays(workers)) for workers in (1, 2))
    assert {(one.method, one.seed, one.best) for one in alone} == {(one.method, one.seed, one.best) for one in shared}
