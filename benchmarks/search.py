"""How well and how fast our searchers search: against Optuna and pymoo on one problem, and against Optuna's storage.

Contest: 200 evaluations of a made-up problem over twelve-layer encoders (see search_kit/problem.py), the hypervolume of
what was found and how many designs were evaluated twice; means over the seeds with 90 % bootstrap intervals. Our
searchers have the defaults they have everywhere; other settings were tried on the seeds from 1000 on, none was taken
over. Evaluations of halving are counted by their steps, and of what it found only full ones count. Overhead: what
the log and the loop cost per trial when an evaluation costs nothing. Ask: one proposal after 10,000 trials.

Run `python benchmarks/search.py [--json FILE] [--rows FILE]`; needs the extras optuna and postgres, pymoo, and
PostgreSQL's programs. Finished runs are kept in the rows file, so that a benchmark that was stopped goes on.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from search_kit.contestants import BEST_PEER, CONTESTANTS, OURS
from search_kit.overhead import measure_asks, measure_overhead
from search_kit.problem import Problem, true_points, volume

from formwright.core.records import History
from formwright.core.rng import derive

Row = dict[str, Any]
EVALUATIONS = 200
RESAMPLES = 10_000


def contest(rows: Path, seeds: int, names: Iterable[str]) -> None:
    """Run what the rows file has not, one line for each contestant and seed; contestants take turns."""
    known = {(row["contestant"], row["seed"]) for row in read(rows)}
    names = list(names)
    for seed in range(seeds):
        for name in names:
            if (name, seed) not in known:
                row = run(name, seed)
                with rows.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(row) + "\n")
                print(f"{name}, seed {seed}: hypervolume {row['hypervolume']:.4f}, {row['cpu_s']:.1f} s", flush=True)


def run(name: str, seed: int) -> Row:
    """Let one contestant search with one seed."""
    started = time.process_time()
    history = CONTESTANTS[name](Problem(), EVALUATIONS, seed)
    spent = time.process_time() - started
    points = true_points(history)
    return {
        "contestant": name,
        "seed": seed,
        "hypervolume": volume(points),
        "hypervolume_of_first_half": volume(points[: len(points) // 2]),
        "duplicates": duplicates(history),
        "full_evaluations": len(points),
        "cpu_s": spent,
    }


def duplicates(history: History) -> int:
    """Count the evaluations that repeat an earlier one: same design, same budget."""
    return len(history.trials) - len({(trial.request.card.digest, trial.request.budget) for trial in history.trials})


def summary(rows: list[Row], seeds: int) -> Row:
    """Give means with intervals, and how far our searchers are ahead of the best peer with the same seeds."""
    table = {name: [row for row in rows if row["contestant"] == name and row["seed"] < seeds] for name in CONTESTANTS}
    volumes = {name: values(found, "hypervolume") for name, found in table.items()}
    result: Row = {"seeds": seeds, "evaluations": EVALUATIONS, "contestants": {}}
    for name, found in table.items():
        result["contestants"][name] = {
            "hypervolume": interval(volumes[name]),
            "hypervolume_of_first_half": interval(values(found, "hypervolume_of_first_half")),
            "duplicates": interval(values(found, "duplicates")),
            "cpu_s": float(np.mean(values(found, "cpu_s"))),
        }
        if name in OURS:
            result["contestants"][name]["ahead_of_best_peer"] = interval(volumes[name] - volumes[BEST_PEER])
    return result


def values(rows: list[Row], key: str) -> np.ndarray:
    return np.array([row[key] for row in sorted(rows, key=lambda row: row["seed"])], dtype=float)


def interval(sample: np.ndarray) -> list[float]:
    """Return the mean and its 90 % bootstrap interval."""
    drawn = derive(0, "bootstrap").choice(sample, (RESAMPLES, len(sample))).mean(axis=1)
    return [float(sample.mean()), *map(float, np.quantile(drawn, (0.05, 0.95)))]


def read(rows: Path) -> list[Row]:
    return [json.loads(line) for line in rows.read_text(encoding="utf-8").splitlines()] if rows.exists() else []


def show(figures: Row) -> None:
    print(f"{'':30} hypervolume, 90 % interval   duplicates   CPU s")
    for name, found in figures["contest"]["contestants"].items():
        mean, low, high = found["hypervolume"]
        print(f"{name:30} {mean:.4f} [{low:.4f}, {high:.4f}]    {found['duplicates'][0]:10.1f} {found['cpu_s']:7.1f}")
    for name in OURS:
        mean, low, high = figures["contest"]["contestants"][name]["ahead_of_best_peer"]
        print(f"{name} is ahead of {BEST_PEER} by {mean:+.4f} [{low:+.4f}, {high:+.4f}]")
    print(json.dumps({key: figures[key] for key in ("overhead_ms", "ask_ms") if key in figures}, indent=2))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--rows", type=Path, default=Path("search.jsonl"), help="where finished runs are kept")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--only", nargs="+", choices=CONTESTANTS, help="run these contestants and nothing else")
    arguments = parser.parse_args()
    contest(arguments.rows, arguments.seeds, arguments.only or CONTESTANTS)
    if arguments.only:
        return
    figures = {
        "contest": summary(read(arguments.rows), arguments.seeds),
        "overhead_ms": measure_overhead(),
        "ask_ms": measure_asks(),
    }
    show(figures)
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
