"""`formwright bench`: which method of search is better, on designs that were all trained before."""

import time
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from formwright.cli import panels
from formwright.cli.bench_view import print_standings
from formwright.cli.options import AsJson
from formwright.cli.output import note, print_json
from formwright.core.errors import IllegalInput
from formwright.core.text import clock

if TYPE_CHECKING:
    from formwright.evaluate.benchmark import Benchmark
    from formwright.study.contest import Contest, Method, Replay

_SECONDS_BETWEEN_LINES = 10.0


class Name(StrEnum):
    """The benchmarks."""

    flexi = "flexi"


def bench(
    name: Annotated[Name, typer.Argument(help="The benchmark: flexi, small FlexiBERT encoders on a builtin task.")],
    methods: Annotated[
        str, typer.Option(help="Methods, separated by commas; all: every quick one.", rich_help_panel=panels.SEARCH)
    ] = "all",
    runs: Annotated[
        int,
        typer.Option(
            min=1, help="Searches of each method, with the seeds 0, 1, 2 and so on.", rich_help_panel=panels.SEARCH
        ),
    ] = 50,
    evaluations: Annotated[
        int,
        typer.Option(min=1, help="Maximum number of designs that a search may evaluate.", rich_help_panel=panels.STOP),
    ] = 100,
    workers: Annotated[int, typer.Option(min=1, help="Worker processes.", rich_help_panel=panels.RUNNING)] = 2,
    table: Annotated[
        Path | None, typer.Option(help="A table of your own instead of the built-in one.", rich_help_panel=panels.DATA)
    ] = None,
    results: Annotated[
        Path | None,
        typer.Option(
            help="File that keeps finished searches, so that a later call can resume.", rich_help_panel=panels.OUTPUT
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compare methods of search: replay searches on a table of trained designs."""
    from functools import partial

    from formwright.evaluate.benchmark import load_flexibench
    from formwright.study.contest import Contest
    from formwright.study.standing import standings

    load = partial(load_flexibench, table)
    benchmark = load()
    _refuse_more_than_there_are(evaluations, len(benchmark.table))
    contest = Contest(load, _chosen(methods, benchmark), runs, evaluations)
    found = standings(benchmark, list(_replays(contest, benchmark, workers, results)))
    facts = {"benchmark": str(name), **_facts(benchmark), "runs": runs, "evaluations": evaluations}
    if as_json:
        print_json({**facts, "methods": found})
    else:
        print_standings(facts, found)


def _refuse_more_than_there_are(evaluations: int, designs: int) -> None:
    if evaluations > designs:
        raise IllegalInput(f"--evaluations {evaluations:,}: the table has {designs:,} designs, which is the maximum")


def _chosen(names: str, benchmark: "Benchmark") -> list["Method"]:
    from formwright.study.contest import all_methods, find_methods, usual_methods

    if names != "all":
        return find_methods([name.strip() for name in names.split(",")])
    found = usual_methods(benchmark)
    absent = [method.name for method in all_methods() if method not in found]
    if absent:
        note(f"left out, because slow or not installed: {', '.join(absent)}")
    return found


def _replays(contest: "Contest", benchmark: "Benchmark", workers: int, results: Path | None) -> Iterator["Replay"]:
    from formwright.study.contest import ContestFile

    if results is None:
        return _told(contest.replays(workers), 0, len(contest.methods) * contest.runs)
    file = ContestFile(results, benchmark.table.digest, len(benchmark.table))
    known = contest.known(file.read())
    made = file.keep(contest.replays(workers, known))
    return iter([*known, *_told(made, len(known), len(contest.methods) * contest.runs)])


def _told(replays: Iterator["Replay"], known: int, total: int) -> Iterator["Replay"]:
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
