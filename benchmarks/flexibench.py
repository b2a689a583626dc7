"""FlexiBench: train the designs of `flexibert-nano` and keep, for each, its scores along the training.

The designs come in one fixed random order, so that any number of the first ones is a uniform sample: each with seed 0,
and then the first `--seeds-for` of them with the seeds 1 to 4, to know the noise. Each run appends one line to the
results: validation and test scores after half and all of the steps, parameters, MACs and CPU seconds. What is there, or
in the table that comes with the package, is not run again; a benchmark that was stopped, or killed, goes on. One thread
a process.

Run `.venv/bin/python benchmarks/flexibench.py [--designs 9312] [--results FILE]`, and then the same with `--pack FILE`
to write a table of all runs, those of the package's table among them, for `formwright bench flexi --table FILE`.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from dataclasses import asdict, dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

from flexibench_kit.latency import latencies, quick
from flexibench_kit.pack import packed, unpacked
from flexibench_kit.tabulate import tabulate

from formwright.arch.card import Card
from formwright.core.errors import EvaluationFailed, IllegalInput
from formwright.core.records import Objective
from formwright.core.rng import derive
from formwright.cost import macs, params
from formwright.evaluate.benchmark import load_flexibench
from formwright.evaluate.training import Trainer
from formwright.pipeline.task_choice import TrainingChoice
from formwright.space.zoo import load_space
from formwright.study.processes import in_processes
from formwright.tasks import load_task
from formwright.tasks.metrics import metric

Row = dict[str, Any]
SPACE = "flexibert-nano"
SEEDS = (1, 2, 3, 4)  # beside 0


@dataclass(frozen=True)
class Plan:
    """What every design is trained on, and how; `marks` are the shares of the steps after which it is judged."""

    task: str
    training: TrainingChoice
    marks: tuple[float, ...] = (0.5, 1.0)

    @property
    def steps(self) -> list[int]:
        return sorted({max(1, round(share * self.training.steps)) for share in self.marks})

    @property
    def settings(self) -> Row:
        rows = load_task(self.task).search_view().train.digest[:12]
        return {"task": self.task, "rows": rows, "marks": self.steps, **asdict(self.training)}


def order() -> list[int]:
    """Give the order in which designs, numbered as the space lists them, are trained."""
    return [int(index) for index in derive(0, "flexibench", "order").permutation(load_space(SPACE).count())]


@cache
def cards() -> list[Card]:
    space = load_space(SPACE)
    return [space.card(design) for design in space.enumerate()]


def pairs(designs: int, seeds_for: int) -> list[tuple[int, int]]:
    """List the runs, each a design and a seed, in the order in which they are made."""
    chosen = order()[:designs]
    return [(index, 0) for index in chosen] + [(index, seed) for index in chosen[:seeds_for] for seed in SEEDS]


def execute(plan: Plan, pair: tuple[int, int]) -> Row:
    """Train one design with one seed; a training that fails is a result too."""
    index, seed = pair
    card, task = cards()[index], load_task(plan.task)
    length = plan.training.length
    row: Row = {"index": index, "digest": card.digest, "seed": seed}
    started = time.process_time()
    try:
        points = tabulate(Trainer(task, plan.training.make()), card, seed, plan.steps)
        row["validation"] = {name: [point.validation[name] for point in points] for name in task.metrics}
        row["test"] = {name: [point.test[name] for point in points] for name in task.metrics}
    except EvaluationFailed as failure:
        row["failure"] = str(failure)
    row["seconds"] = round(time.process_time() - started, 2)
    return {**row, "params": params(card), "macs": macs(card, length), "settings": plan.settings}


def stored(path: Path, plan: Plan) -> list[Row]:
    """Read the rows that were made by this plan; a last line that was cut short does not count."""
    if not path.exists():
        return []
    settings = json.loads(json.dumps(plan.settings))
    lines = path.read_text(encoding="utf-8").split("\n")[:-1]
    return [row for row in map(json.loads, lines) if row["settings"] == settings]


def tabulated(plan: Plan) -> list[Row]:
    """Read the runs in the package's table, where they were made by this plan."""
    try:
        table = load_flexibench().table
    except IllegalInput:
        return []
    return unpacked(table) if table.facts["settings"] == json.loads(json.dumps(plan.settings)) else []


def known(plan: Plan, path: Path) -> list[Row]:
    """Give all runs of this plan that need not be made again."""
    return [*tabulated(plan), *stored(path, plan)]


def complete(plan: Plan, wanted: list[tuple[int, int]], path: Path, workers: int) -> None:
    """Make the runs that are not known yet."""
    if path.exists():
        text = path.read_bytes()
        os.truncate(path, text.rfind(b"\n") + 1)  # without a line that was cut short
    done = {(row["index"], row["seed"]) for row in known(plan, path)}
    missing = [pair for pair in wanted if pair not in done]
    began = time.monotonic()
    with path.open("a", encoding="utf-8") as file:
        for number, row in enumerate(in_processes(partial(execute, plan), missing, workers), start=1):
            file.write(json.dumps(row) + "\n")
            file.flush()
            if number % 20 == 0 or number == len(missing):
                pace = (time.monotonic() - began) / number
                hours = pace * (len(missing) - number) / 3600
                print(f"{number:,} of {len(missing):,}, {pace:.2f} s a run, {hours:.1f} h left", file=sys.stderr)


def arguments() -> argparse.Namespace:
    # of half as many rows, seeds made more difference than designs
    default = TrainingChoice(steps=200, batch=64, learning_rate=3e-3, length=64)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", default="mini-glue/sst2")
    parser.add_argument("--steps", type=int, default=default.steps)
    parser.add_argument("--batch", type=int, default=default.batch)
    parser.add_argument("--rate", type=float, default=default.learning_rate)
    parser.add_argument("--warmup", type=float, default=default.warmup)
    parser.add_argument("--length", type=int, default=default.length)
    parser.add_argument("--marks", type=float, nargs="+", default=list(Plan.marks), help="shares of the steps")
    parser.add_argument("--designs", type=int, default=load_space(SPACE).count())
    parser.add_argument("--seeds-for", type=int, default=300, help="designs that are trained with four more seeds")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--results", type=Path, default=Path("flexibench.jsonl"))
    parser.add_argument("--pack", type=Path, help="run nothing, and write the table of what was run to this file")
    return parser.parse_args()


def pack(plan: Plan, path: Path, rows: list[Row]) -> None:
    """Write the table of the runs."""
    space, metric_name = load_space(SPACE), load_task(plan.task).metric
    found = latencies(space, quick(plan.training.length))
    facts = {
        "space": SPACE,
        "task": plan.task,
        "objective": str(Objective(metric_name, metric(metric_name).direction)),
        "marks": plan.steps,
        "settings": plan.settings,
        "designs": space.count(),
        "latency": "one row, one thread, fastest 5 % of the runs, summed over stacks",
        "latency_deviation": found.deviation,
    }
    table = packed(rows, facts, (0, *SEEDS), found.milliseconds, metric_name)
    table.write(path)
    print(f"{path}: {len(table):,} designs, {len(table.noise_rows)} of them with every seed", file=sys.stderr)


def main() -> None:
    options = arguments()
    training = TrainingChoice(options.steps, options.batch, options.rate, options.warmup, length=options.length)
    plan = Plan(options.task, training, tuple(options.marks))
    if options.pack is not None:
        pack(plan, options.pack, known(plan, options.results))
        return
    complete(plan, pairs(options.designs, options.seeds_for), options.results, options.workers)


if __name__ == "__main__":
    main()
