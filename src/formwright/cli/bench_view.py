"""How the standings of a contest are shown: a table with a drawn curve for each method."""

from collections.abc import Sequence
from typing import Any

from formwright.cli.output import echo, print_table

_BARS = "▁▂▃▄▅▆▇█"
_POINTS = 10  # of a drawn curve


def print_standings(facts: dict[str, Any], found: dict[str, dict[str, Any]]) -> None:
    """Print a line on the benchmark and a table of methods, best first."""
    every = [score for standing in found.values() for score in standing["curve"]]
    rows = [
        [
            name,
            f"{one['final']:.4f}",
            f"±{(one['interval'][1] - one['interval'][0]) / 2:.4f}",
            f"{one['test']:.4f}",
            f"{one['rank']:.0f}",
            _found(one["top"]),
            _found(one["good"]),
            f"{one['seconds']:.1f}",
            _drawn(one["curve"], min(every), max(every)),
        ]
        for name, one in found.items()
    ]
    echo(_headline(facts))
    print_table(["method", ">found", ">90 %", ">test", ">rank", ">top 0.1 %", ">top 1 %", ">s", ">curve"], rows)


def _headline(facts: dict[str, Any]) -> str:
    some = f"{facts['tabulated']:,} of the" if facts["tabulated"] < facts["designs"] else "all"
    designs = f"{some} {facts['designs']:,} designs of {facts['space']}"
    problem = f"{facts['task']}, {facts['objective']} after {facts['steps']} steps"
    searches = f"for each method {facts['runs']} x {facts['evaluations']} evaluations"
    return f"{problem}: {designs}, the best {facts['best']:.4f}; {searches}.\n"


def _found(best: dict[str, Any]) -> str:
    """Say after how many evaluations one of the best was found, and by which share of the searches."""
    after = "" if best["evaluations"] is None else f"{best['evaluations']:.0f}, "
    return f"{after}{best['share']:.0%}"


def _drawn(curve: Sequence[float], low: float, high: float) -> str:
    """Draw a curve with blocks of different heights."""
    points = [curve[round(index * (len(curve) - 1) / (_POINTS - 1))] for index in range(_POINTS)]
    height = (len(_BARS) - 1) / (high - low) if high > low else 0.0
    return "".join(_BARS[round((point - low) * height)] for point in points)
