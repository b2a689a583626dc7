import json
from dataclasses import replace

import numpy as np
import pytest
from tests.evaluate.fake_table import fake_benchmark

from formwright.evaluate.benchmark import Benchmark
from formwright.study.contest import NOTHING, Replay
from formwright.study.standing import standings

BENCHMARK = fake_benchmark()
SCORES, TEST = BENCHMARK.scores(), BENCHMARK.scores("test")
ORDER = [int(row) for row in np.argsort(-SCORES)]
BEST, WORST = ORDER[0], ORDER[-1]


def test_a_curve_is_the_mean_of_the_searches() -> None:
    searches = [Replay("a", 0, (WORST, 5, BEST), 1.0), Replay("a", 1, (WORST, WORST, 5), 3.0)]
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
        standings(BENCHMARK, [Replay("a", seed, (row,), 0.0) for seed, row in enumerate(chosen)])["a"]
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


def test_the_best_method_comes_first() -> None:
    searches = [Replay(name, 0, (row,), 0.0) for name, row in (("c", 5), ("b", WORST), ("a", BEST))]
    assert list(standings(BENCHMARK, searches)) == ["a", "c", "b"]
    lowest = replace(BENCHMARK.table, facts={**BENCHMARK.table.facts, "objective": "loss:min"})
    assert list(standings(Benchmark(lowest, BENCHMARK.space), searches)) == ["b", "c", "a"]


def test_it_is_told_how_soon_one_of_the_best_was_found() -> None:
    sooner, later = (WORST, BEST, BEST, BEST), (WORST, WORST, WORST, BEST)
    never = (WORST,) * 4
    found = standings(BENCHMARK, [Replay("a", seed, rows, 0.0) for seed, rows in enumerate((sooner, later, never))])
    top = found["a"]["top"]
    assert top["designs"] == 1
    assert top["share"] == pytest.approx(2 / 3)
    assert top["evaluations"] == 4
    assert top["interval"] == [2, None]
    assert found["a"]["good"]["designs"] == 2  # 1 % of 200
    second = standings(BENCHMARK, [Replay("a", 0, (WORST, ORDER[1]), 0.0)])["a"]
    assert (second["top"]["share"], second["good"]["share"], second["good"]["evaluations"]) == (0, 1, 2)
    rarely = standings(BENCHMARK, [Replay("a", seed, rows, 0.0) for seed, rows in enumerate((sooner, never, never))])
    assert rarely["a"]["top"]["evaluations"] is None


def test_standings_are_plain_data_and_nothing_has_the_worst_score() -> None:
    found = standings(BENCHMARK, [Replay("a", 0, (NOTHING, BEST), 0.0)])["a"]
    assert found["curve"] == [SCORES[WORST], SCORES[BEST]]
    found = standings(BENCHMARK, [Replay("a", 0, (WORST, BEST), 0.5)])
    assert json.loads(json.dumps(found, allow_nan=False)) == found
