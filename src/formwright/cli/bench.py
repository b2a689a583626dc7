"""`formwright bench`: which method of search is better, on designs that were all trained before."""

import time
from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from formwright.cli.options import DATA, OUTPUT, RUNNING, SEARCH, STOP, AsJson, argument, flag
from formwright.cli.output import echo, note, print_json, print_table
from formwright.core.errors import IllegalInput
from formwright.core.text import clock

if TYPE_CHECKING:
    from formwright.evaluate.benchmark import Benchmark
    from formwright.study.contest import Contest, Method, SearchRun

_SECONDS_BETWEEN_LINES = 10.0
_BARS = "▁▂▃▄▅▆▇█"
_POINTS = 10  # of a drawn curve


Benchmarks = StrEnum("Benchmarks", ["flexi"])
_RESULTS = "File that keeps finished searches, so that a later call can resume."


def bench(
    name: Annotated[Benchmarks, argument("The benchmark: flexi, small FlexiBERT encoders on a builtin task.")],
    methods: Annotated[str, flag("Methods, separated by commas; all: every quick one.", SEARCH)] = "all",
    runs: Annotated[int, flag("Searches of each method, with the seeds 0, 1, 2 and so on.", SEARCH, min=1)] = 50,
    evaluations: Annotated[int, flag("Maximum number of designs that a search may evaluate.", STOP, min=1)] = 100,
    workers: Annotated[int, flag("Worker processes.", RUNNING, min=1)] = 2,
    table: Annotated[Path | None, flag("A table of your own instead of the built-in one.", DATA)] = None,
    results: Annotated[Path | None, flag(_RESULTS, OUTPUT)] = None,
    as_json: AsJson = False,
) -> None:
    """Compare methods of search: replay searches on a table of trained designs."""
    from functools import partial

    from formwright.evaluate.benchmark import load_flexibench
    from formwright.study.contest import Contest, standings

    load = partial(load_flexibench, table)
    benchmark = load()
    if evaluations > len(benchmark.table):
        most = f"{len(benchmark.table):,}"
        raise IllegalInput(f"--evaluations {evaluations:,}: the table has {most} designs, which is the maximum")
    contest = Contest(load, _chosen(methods, benchmark), runs, evaluations)
    found = standings(benchmark, list(_replays(contest, benchmark, workers, results)))
    facts = {"benchmark": str(name), **_facts(benchmark), "runs": runs, "evaluations": evaluations}
    if as_json:
        print_json({**facts, "methods": found})
    else:
        _print_standings(facts, found)


def _chosen(names: str, benchmark: "Benchmark") -> list["Method"]:
    from formwright.study.contest import all_methods, find_methods, usual_methods

    if names != "all":
        return find_methods([name.strip() for name in names.split(",")])
    found = usual_methods(benchmark)
    absent = [method.name for method in all_methods() if method not in found]
    if absent:
        note(f"left out, because slow or not installed: {', '.join(absent)}")
    return found


def _replays(contest: "Contest", benchmark: "Benchmark", workers: int, results: Path | None) -> Iterator["SearchRun"]:
    from formwright.study.contest import ContestFile

    if results is None:
        return _told(contest.replays(workers), 0, len(contest.methods) * contest.runs)
    file = ContestFile(results, benchmark.table.digest, len(benchmark.table))
    known = contest.known(file.read())
    made = file.keep(contest.replays(workers, known))
    return iter([*known, *_told(made, len(known), len(contest.methods) * contest.runs)])


def _told(replays: Iterator["SearchRun"], known: int, total: int) -> Iterator["SearchRun"]:
    """Pass searches on, and say now and then how far it is."""
    began = last = time.monotonic()
    for number, found in enumerate(replays, start=1):
        yield found
        now = time.monotonic()
        if now - last > _SECONDS_BETWEEN_LINES:
            left = (now - began) / number * (total - known - number)
            note(f"{known + number:,} of {total:,} searches, {clock(left)} left")
            last = now


def _facts(benchmark: "Benchmark") -> dict[str, Any]:
    from dataclasses import asdict

    import numpy as np

    scores = benchmark.scores()
    facts = {name: benchmark.table.facts[name] for name in ("space", "task", "objective")}
    best = float(np.nanmax(scores) if benchmark.objective.direction == "max" else np.nanmin(scores))
    noise = asdict(benchmark.noise()) if len(benchmark.table.noise_rows) > 1 else None
    size = {"tabulated": len(scores), "designs": benchmark.space.count()}
    return {**facts, **size, "steps": benchmark.steps, "best": best, "noise": noise}


def _print_standings(facts: dict[str, Any], found: dict[str, dict[str, Any]]) -> None:
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
