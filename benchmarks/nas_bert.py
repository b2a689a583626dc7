"""NAS-BERT's claims on a finished compression: does the sum of block losses order students, and what are they worth?

`tau` draws whole chains from the tables and compares the sum of their losses with their distance from the teacher;
`survivors` trains chains that the first round kept, and chains that it dropped from the same bin, alone and equally
long; `latency` compares milliseconds that were added up with measured ones; `tasks` teaches a chain of BERT's shape
within each size, and the best that is found with at most its parameters, equally long on the same text, and fine-tunes
all of them on each task with the answers of the fine-tuned teacher. Arms `found-fresh` and `bert` begin with fresh
layers, `found` with those of its blocks. Every result is a line of `--results`, and is not computed again for the same
compression and effort.

Run `.venv/bin/python benchmarks/nas_bert.py DIR --data GLUE [--parts tau ...] [--seeds 0 1 2] [--results FILE]`, where
DIR is what `formwright compress --recipe nas-bert --out DIR` delivered.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

import numpy as np
from nas_bert_kit.bench import Bench, Results, Row
from nas_bert_kit.scores import additive, alone, pairs, timed
from nas_bert_kit.students import ARMS, Effort, Lesson
from scipy.stats import kendalltau

from formwright.core.rng import derive
from formwright.tasks import FROM_DATA
from formwright.train.device import threads

PARTS = ("tau", "survivors", "latency", "tasks")
TASKS = ("glue/sst2", "glue/cola", "glue/rte")
_DRAWS = 1000  # of the bootstrap


def correlation(rows: Sequence[Row], first: str, second: str) -> tuple[float, float, float]:
    """Give Kendall's tau of two columns, and the middle 95 % of its bootstrap."""
    pair = np.array([[row[first], row[second]] for row in rows])
    rng = derive(0, "bootstrap")
    drawn = (pair[rng.integers(len(pair), size=len(pair))] for _ in range(_DRAWS))
    low, high = np.nanquantile([kendalltau(*sample.T).statistic for sample in drawn], (0.025, 0.975))
    return float(kendalltau(*pair.T).statistic), float(low), float(high)


def tau(bench: Bench, number: int) -> None:
    """Order whole students by the sum of their blocks' losses."""
    rows = _drawn(bench, "tau", number, additive)
    found, low, high = correlation(rows, "loss", "distance")
    print(f"tau of the sum of losses and the distance over {len(rows)} students: {found:.3f} ({low:.3f} to {high:.3f})")


def latency(bench: Bench, number: int) -> None:
    """Compare sums of milliseconds with measured ones."""
    rows = _drawn(bench, "latency", number, timed)
    off = np.mean([abs(row["added"] / row["measured"] - 1) for row in rows])
    found, low, high = correlation(rows, "added", "measured")
    print(f"latency of {len(rows)} students: off by {off:.1%} in the mean, tau {found:.3f} ({low:.3f} to {high:.3f})")


def _drawn(bench: Bench, part: str, number: int, compute: Callable[[Bench, int], Row]) -> list[Row]:
    return [bench.results.kept(part, f"{bench.mark()}/{one}", partial(compute, bench, one)) for one in range(number)]


def survivors(bench: Bench, number: int, steps: int) -> None:
    """Train chains that stayed and chains that were dropped, equally long."""
    wins = []
    for block in range(bench.selection.started.menu.blocks):
        for place, pair in enumerate(pairs(bench, block, number)):
            losses = []
            for name, chain in zip(("stayed", "dropped"), pair, strict=True):
                key = f"{bench.mark({'steps': steps})}/{block}/{place}/{name}"
                compute = partial(alone, bench, block, chain, steps)
                losses.append(bench.results.kept("survivors", key, compute)["loss"])
            wins.append(losses[0] < losses[1])
    print(f"survivors: of {len(wins)} pairs of one bin, the one that stayed was better in {np.mean(wins):.0%}")


def tasks(bench: Bench, data: Path | None, names: Sequence[str], effort: Effort) -> None:
    """Fine-tune found chains and chains of BERT's shape on tasks."""
    mark = bench.mark(asdict(effort))
    for name in names:
        lesson = Lesson(bench, name, data, effort)
        found = bench.results.kept("tasks", f"{mark}/{name}/teacher", lambda lesson=lesson: lesson.teacher[1])  # type: ignore[misc]
        print(name, "teacher", f"{found['score']:.4f}")
        for size in bench.selection.started.sizes:
            for arm in ARMS:
                compute = partial(lesson.fine_tuned, size.name, arm)
                found = bench.results.kept("tasks", f"{mark}/{name}/{size.name}/{arm}", compute)
                print(name, size.name, arm, f"{found['score']:.4f}", f"{found['params']:,}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Compute what is not there yet, and print all of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--tasks", nargs="+", default=TASKS)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--results", type=Path, default=Path("nas_bert.jsonl"))
    parser.add_argument("--students", type=int, default=60)
    parser.add_argument("--pairs", type=int, default=8)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--epochs", type=float, default=3)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--length", type=int, default=48)
    chosen = parser.parse_args(arguments)
    lacking = [name for name in chosen.tasks if name in FROM_DATA and chosen.data is None]
    if "tasks" in chosen.parts and lacking:
        parser.error(f"the part tasks reads {', '.join(lacking)} from files: name their folder with --data DIR")
    with threads(1):
        for seed in chosen.seeds:
            bench = Bench(chosen.out, Results(chosen.results), seed)
            if "tau" in chosen.parts:
                tau(bench, chosen.students)
            if "latency" in chosen.parts:
                latency(bench, chosen.students)
            if "survivors" in chosen.parts:
                survivors(bench, chosen.pairs, chosen.steps)
            if "tasks" in chosen.parts:
                effort = Effort(chosen.steps, chosen.epochs, chosen.rows, chosen.length)
                tasks(bench, chosen.data, chosen.tasks, effort)


if __name__ == "__main__":
    main()
