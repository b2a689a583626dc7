"""The Evolved Transformer's two claims, on a small budget: its cells are better, and hurdles save training steps.

- `cells`: the published cells, one in encoder and decoder each, against the Transformer of two layers each with equally
  many parameters (64 features, 2,000 tokens), on Multi30k (English to German) and, as decoders alone, on WikiText-2:
  perplexity and BLEU on the validation rows.
- `table`: the searcher `hurdles` against the same evolution with short trainings only, with full trainings only, and
  against asynchronous halving, on a table of trained designs (FlexiBench, or any file that `benchmarks/flexibench.py
  --pack` wrote): training steps until the design that a search would choose is among the best 1 % of the table, and
  stays there.
- `search`: the same four on the nano cells and the generated translation task, with real training: the perplexity after
  a whole training of what each would choose after every tenth of the steps, on rows that no search has seen.

Run `python benchmarks/evolved_transformer.py --data DIR [--parts cells table search] [--results FILE] [--json FILE]
[--figure FILE] [--table FILE] [--seeds N] [--table-seeds N] [--workers N] [--tiny | --early]`. Every finished unit is a
line of the results file, and is not run again while the plan of its part is the same; what failed is a line too. Real
searches have the rungs and the population of the recipe, or with `--early` small ones. `--tiny` shows in a minute that
all of it runs. Units are single-threaded processes.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from pathlib import Path

from evolved_kit.cells import DESIGNS, TASKS, measure
from evolved_kit.figures import races
from evolved_kit.races import WAYS, Course, Moment, in_full, race, steps_to
from evolved_kit.summaries import PARTS, Row, summary

from formwright.core.errors import EvaluationFailed
from formwright.core.records import Objective
from formwright.evaluate.benchmark import Benchmark, load_flexibench
from formwright.evaluate.context import Context
from formwright.evaluate.training import Staged, Trainer
from formwright.pipeline.task_choice import TrainingChoice
from formwright.search.proposals import anything
from formwright.space.zoo import load_space
from formwright.study.processes import in_processes
from formwright.tasks import load_task
from formwright.tasks.metrics import without_writing
from formwright.tasks.rows import Splits
from formwright.tasks.task import Task, some_rows

Unit = tuple[str, ...]  # part, what, how, seed
BEST = 0.01  # share of a table's designs that counts as good
SHARES = tuple(tenths / 10 for tenths in range(1, 11))
# what each part depends on: rows that were made with other values of these do not count
OWN = {
    "cells": ("cells", "rows"),
    "table": ("table_trainings", "table_population"),
    "search": ("search", "rungs", "population", "tournament", "search_steps", "rows", "validation"),
}


@dataclass(frozen=True)
class Plan:
    """Say how long everything takes.

    A search of the table may spend the steps of `table_trainings` whole trainings. Designs learn from the first `rows`
    rows where that is a number. Real searches see the first `validation` validation rows; what they choose is judged on
    as many others.
    """

    cells: TrainingChoice
    search: TrainingChoice
    rungs: tuple[int, ...]
    population: int
    tournament: int
    search_steps: int
    table_trainings: int
    table_population: int
    validation: int
    rows: int | None = None


WHOLE = Plan(
    cells=TrainingChoice(steps=600, batch=64, learning_rate=2e-3, warmup=0.2, length=48),
    search=TrainingChoice(steps=108, batch=16, length=32),
    rungs=(12, 36, 108),
    population=20,
    tournament=4,
    search_steps=4_320,
    table_trainings=100,
    table_population=20,
    validation=512,
)
# a small population, whose hurdles stand after 8 and 16 designs
EARLY = replace(
    WHOLE,
    search=TrainingChoice(steps=100, batch=16, length=32),
    rungs=(25, 50, 100),
    population=8,
    tournament=3,
    search_steps=4_000,
)
TINY = Plan(
    cells=TrainingChoice(steps=3, batch=8, length=16),
    search=TrainingChoice(steps=4, batch=8, length=16),
    rungs=(1, 2, 4),
    population=3,
    tournament=3,
    search_steps=12,
    table_trainings=4,
    table_population=4,
    validation=32,
    rows=32,
)


@dataclass(frozen=True)
class Sources:
    """Say where data and table are."""

    data: Path | None
    table: Path | None


def units(parts: Sequence[str], seeds: int, table_seeds: int) -> list[Unit]:
    """List what is to be run, seed by seed, so that a benchmark that is stopped has some of everything."""
    found = [("cells", task, design, str(seed)) for seed in range(seeds) for task in TASKS for design in DESIGNS]
    found += [("table", "table", way, str(seed)) for seed in range(table_seeds) for way in WAYS]
    found += [("search", "translation", way, str(seed)) for seed in range(seeds) for way in WAYS]
    return [unit for unit in found if unit[0] in parts]


def execute(plan: Plan, sources: Sources, unit: Unit) -> Row:
    """Run one unit."""
    part, what, how, seed = unit
    began = time.process_time()
    try:
        found = _found(plan, sources, (part, what, how), int(seed))
    except EvaluationFailed as failure:  # it would fail again: that is what was found
        found = {"failed": str(failure)}
    return {
        "unit": list(unit),
        "plan": own_plan(plan, sources, part),
        "cpu_s": round(time.process_time() - began, 1),
        **found,
    }


def own_plan(plan: Plan, sources: Sources, part: str) -> Row:
    """Give what the rows of a part depend on, as JSON has it: its share of the plan, and the table's content."""
    own = {name: value for name, value in asdict(plan).items() if name in OWN[part]}
    if part == "table":
        own["table"] = bench(sources.table).table.digest
    found: Row = json.loads(json.dumps(own))
    return found


def _found(plan: Plan, sources: Sources, unit: tuple[str, str, str], seed: int) -> Row:
    part, what, how = unit
    if part == "cells":
        assert sources.data is not None
        return measure(sources.data, plan.cells, (what, how, seed), plan.rows)
    return on_table(plan, sources, how, seed) if part == "table" else for_real(plan, sources, how, seed)


@cache
def bench(path: Path | None) -> Benchmark:
    return load_flexibench(path)


def on_table(plan: Plan, sources: Sources, way: str, seed: int) -> Row:
    """Search a table, and say after how many steps the choice is among the best."""
    table = bench(sources.table)
    marks = table.table.marks
    course = Course(table.space, table.objective, table.legal, marks, plan.table_population)
    steps = plan.table_trainings * marks[-1]
    moments = race(course, way, table.evaluator(), steps, seed)
    place = max(1, math.ceil(BEST * len(table.table)))
    found = steps_to((moment.steps, bool(table.ranks[table.row(moment.chosen)] <= place)) for moment in moments)
    last = table.row(moments[-1].chosen)
    return {
        "steps_to_best": found,
        "steps": steps,
        "rank": int(table.ranks[last]),
        "score": float(table.scores()[last]),
    }


def for_real(plan: Plan, _: Sources, way: str, seed: int) -> Row:
    """Search the nano cells, and judge what was chosen after a whole training, on rows that the search has not seen."""
    task = load_task("translation")
    task = replace(task, metrics=without_writing(task.metrics, ()))
    seen, further = (
        Staged(Trainer(few(task, plan.rows, rows), plan.search.make()))
        for rows in (slice(plan.validation), slice(plan.validation, 2 * plan.validation))
    )
    space, goal = load_space("evolved-transformer-nano"), Objective("perplexity", "min")
    course = Course(space, goal, anything, plan.rungs, plan.population, plan.tournament)
    with tempfile.TemporaryDirectory() as searched, tempfile.TemporaryDirectory() as judged:
        moments = race(course, way, seen, plan.search_steps, seed, Context(seed, Path(searched)))
        chosen = {steps: at(moments, steps) for steps in (share * plan.search_steps for share in SHARES)}
        cards = {moment.chosen.digest: moment.chosen for moment in chosen.values() if moment is not None}
        context = Context(seed, Path(judged))
        scores = {name: in_full(further, card, goal.name, context) for name, card in cards.items()}
    return {"curve": [[steps, scores[one.chosen.digest]] for steps, one in chosen.items() if one is not None]}


def few(task: Task, train: int | None, validation: slice) -> Task:
    """Give the first rows of a task to learn from, all where no number is given, and some of those for validation."""
    view = task.search_view()
    chosen = some_rows(view.train, slice(train)), some_rows(view.validation, validation)
    return replace(task, splits=partial(Splits, *chosen, None))


def at(moments: Sequence[Moment], steps: float) -> Moment | None:
    """Give the choice after a number of steps."""
    return next((moment for moment in reversed(moments) if moment.steps <= steps), None)


def stored(path: Path, plans: Mapping[str, Row]) -> list[Row]:
    """Read the rows of these parts that were made by these plans; a last line that was cut short does not count."""
    lines = path.read_text(encoding="utf-8").split("\n")[:-1] if path.exists() else []
    return [row for row in map(json.loads, lines) if plans.get(row["unit"][0]) == row["plan"]]


def plans_of(plan: Plan, sources: Sources, wanted: Sequence[Unit]) -> dict[str, Row]:
    """Give the plan of each part that is wanted."""
    return {part: own_plan(plan, sources, part) for part in {unit[0] for unit in wanted}}


def complete(plan: Plan, sources: Sources, wanted: Sequence[Unit], path: Path, workers: int) -> None:
    """Run the units that are not stored yet, and store them."""
    if path.exists():
        os.truncate(path, path.read_bytes().rfind(b"\n") + 1)
    done = {tuple(row["unit"]) for row in stored(path, plans_of(plan, sources, wanted))}
    missing = [unit for unit in wanted if unit not in done]
    began = time.monotonic()
    with path.open("a", encoding="utf-8") as file:
        for number, row in enumerate(in_processes(partial(execute, plan, sources), missing, workers), start=1):
            file.write(json.dumps(row) + "\n")
            file.flush()
            left = (time.monotonic() - began) / number * (len(missing) - number) / 60
            print(f"{number} of {len(missing)}: {' '.join(row['unit'])}, {left:.0f} min left", file=sys.stderr)


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--data", type=Path, help="the folder that holds multi30k and wikitext-2")
    parser.add_argument("--table", type=Path, help="a table of scores; without one, the packaged FlexiBench")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--table-seeds", type=int, default=20)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--results", type=Path, default=Path("evolved_transformer.jsonl"))
    parser.add_argument("--json", type=Path)
    parser.add_argument("--figure", type=Path, help="the file for a drawing of the real searches")
    plans = parser.add_mutually_exclusive_group()
    plans.add_argument("--early", action="store_true", help="real searches with a small population and early hurdles")
    plans.add_argument("--tiny", action="store_true")
    options = parser.parse_args(given)
    if "cells" in options.parts and options.data is None:
        parser.error("the part cells needs --data DIR")
    return options


def main(given: Sequence[str] | None = None) -> None:
    options = arguments(given)
    plan = TINY if options.tiny else EARLY if options.early else WHOLE
    wanted = units(options.parts, options.seeds, options.table_seeds)
    sources = Sources(options.data, options.table)
    complete(plan, sources, wanted, options.results, options.workers)
    known = {tuple(row["unit"]): row for row in stored(options.results, plans_of(plan, sources, wanted))}
    rows = [known[unit] for unit in wanted]  # the file may hold more seeds
    text = json.dumps(summary(rows), indent=1)
    print(text)
    if options.json is not None:
        options.json.write_text(text + "\n", encoding="utf-8")
    raced = [row for row in rows if "curve" in row]
    if options.figure is not None and raced:
        options.figure.write_text(races(raced), encoding="utf-8")


if __name__ == "__main__":
    main()
