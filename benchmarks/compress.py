"""EFTNAS's claims on real tasks: smaller models out of one super-network, against what a user would pick instead.

For each task and seed a teacher is fine-tuned, which all arms share:
`front` is what `formwright compress` does, beside sub-networks of the same super-network drawn at random;
`orders` puts parts in order by movement, by L1 or not at all, before and after training;
`spaces` replaces Algorithm 1 by a grid of equal steps, and has 3 or 7 widths a layer;
`others` are Torch-Pruning (magnitude and Taylor) and fewer layers at half the MACs, distilled for as many steps as the
super-network; `fronts` are the same rivals at each share of the MACs, in as many steps for all shares together;
`searches` compares searches of one super-network by whole validations; `speed` measures what was found.
Hypervolumes are those of one model for each share, for every arm. Everything that is done is kept in `--results`, and
not done again; several processes may work there, each at a task and seed of its own.

Run `.venv/bin/python benchmarks/compress.py --data DIR [--tasks glue/sst2 glue/rte glue/cola] [--seeds 0 1 2]
[--parts front ...] [--results DIR] [--json FILE]`. `--figures DIR` draws the front of each task from what is kept, and
computes nothing. `--quick` runs every part on a tiny model. Torch-Pruning comes with `pip install torch-pruning`.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from compress_kit.bench import Bench, Row, Setting
from compress_kit.figures import front, kept_results
from compress_kit.networks import Arm, run, trained, untrained
from compress_kit.others import HALF, RIVALS, rival, rival_front
from compress_kit.quick import quick
from compress_kit.searching import random_models, searches
from compress_kit.speed import speed

from formwright.study.alone import alone_in

PARTS = ("front", "others", "searches", "fronts", "orders", "spaces", "speed")
NEED_NETWORK, NEED_PRUNING = {"front", "searches", "speed"}, {"others", "fronts"}
ROWS, LENGTHS = {"glue/sst2": 8000}, {"glue/sst2": 32, "glue/cola": 32, "glue/rte": 128}
USUAL = Arm()
ORDERS = (Arm(order="movement"), Arm(order="l1"), Arm(order="none"))
SPACES = (Arm(space="grid"), Arm(configurations=3), Arm(configurations=7))


def arms(bench: Bench, parts: Sequence[str]) -> dict[str, Row]:
    """Compute what is not there yet."""
    found = {"teacher": bench.kept("teacher", lambda: bench.judged_design(bench.teacher, "teacher"))}
    networks = [USUAL] if NEED_NETWORK & set(parts) else []
    networks += [*ORDERS] if "orders" in parts else []
    networks += [*SPACES] if "spaces" in parts else []
    for arm in networks:
        found[arm.name] = bench.kept(arm.name, lambda arm=arm: run(bench, arm))  # type: ignore[misc]
    if "front" in parts:
        found["random"] = bench.kept("random", lambda: random_models(bench, trained(bench, USUAL)))
    if "orders" in parts:
        found["untrained"] = bench.kept("untrained", lambda: untrained(bench))
    found |= _rivals(bench, parts)
    if "searches" in parts:
        raced = found[USUAL.name]["curve"]
        found["searches"] = bench.kept("searches", lambda: searches(bench, trained(bench, USUAL), raced))
    if "speed" in parts:
        at = found[USUAL.name]["at"]
        found["speed"] = bench.kept("speed", lambda: speed(bench, trained(bench, USUAL), at))
    return found


def _rivals(bench: Bench, parts: Sequence[str]) -> dict[str, Row]:
    found: dict[str, Row] = {}
    steps = bench.plan.network_steps
    for name in RIVALS:
        if "others" in parts:
            arm = f"{name}-{HALF:.0%}-{steps}"
            found[name] = bench.kept(arm, lambda name=name: rival(bench, name, HALF, steps))  # type: ignore[misc]
        if "fronts" in parts:
            arm = f"front-{name}"
            found[arm] = bench.kept(arm, lambda name=name: rival_front(bench, name))  # type: ignore[misc]
    return found


def told(task: str, seed: int, found: dict[str, Row]) -> None:
    """Print scores on validation and test, and hypervolumes of both."""
    print(f"{task} seed {seed}: teacher {_scores(found['teacher'])}")
    for name, row in found.items():
        for share, one in row.get("at", {}).items():
            print(f"  {name} at {share} ({one['macs']:.1%}): {_scores(one)}")
        if "hypervolume" in row:
            print(f"  {name}: hypervolume {', '.join(f'{v:.4f} {split}' for split, v in row['hypervolume'].items())}")
        if "steps" in row:
            print(f"  {name} ({row['macs']:.1%}, {row['steps']:,} steps): {_scores(row)}")
    for name, row in found.get("searches", {}).items():
        enough = row["validations to 98%"]
        reached = "not reached" if enough is None else f"after {enough:.0f}"
        print(f"  {name}: {row['validations']:.0f} whole validations, {row['hypervolume']:.4f}; 98 % {reached}")
    for name, row in found.get("speed", {}).items():
        print(f"  {name}: {', '.join(f'{key} {value:.4g}' for key, value in (row or {}).items())}")


def _scores(row: Row) -> str:
    return f"{row['validation']:.4f} validation" + ("" if row["test"] is None else f", {row['test']:.4f} test")


def main(arguments: Sequence[str] | None = None) -> None:
    options = _options(arguments)
    if options.figures:
        _draw(options.results, options.tasks, options.figures)
        return
    if NEED_PRUNING & set(options.parts) and find_spec("torch_pruning") is None:
        raise SystemExit("the parts others and fronts need Torch-Pruning: pip install torch-pruning")
    found: dict[str, Any] = {}
    for setting in _settings(options):
        out = options.results / setting.task.replace("/", "-") / f"seed-{setting.seed}"
        with alone_in(out):  # which waits for another process there
            bench, key = Bench(setting, out), f"{setting.task} {setting.seed}"
            bench.claim()
            found[key] = arms(bench, options.parts)
        told(setting.task, setting.seed, found[key])
    if options.json:
        options.json.write_text(json.dumps(found, indent=1), encoding="utf-8")


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="the folder of GLUE")
    parser.add_argument("--tasks", nargs="+", default=["glue/sst2", "glue/rte", "glue/cola"])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--epochs", type=float, default=Setting.epochs, help="of the super-network and of every rival")
    parser.add_argument("--evaluations", type=int, default=Setting.evaluations)
    parser.add_argument("--threads", type=int, default=Setting.threads)
    parser.add_argument("--results", type=Path, default=Path("compress-benchmark"))
    parser.add_argument("--json", type=Path)
    parser.add_argument("--figures", type=Path, help="draw what is kept into this folder, and compute nothing")
    parser.add_argument("--quick", action="store_true", help="a tiny model and a builtin task, to see that all runs")
    return parser.parse_args(arguments)


def _settings(options: argparse.Namespace) -> list[Setting]:
    if options.quick:
        return [quick(options.results)]
    data = None if options.data is None else str(options.data)
    return [
        Setting(
            task,
            data,
            ROWS.get(task),
            LENGTHS.get(task, 64),
            seed,
            options.epochs,
            threads=options.threads,
            evaluations=options.evaluations,
        )
        for task in options.tasks
        for seed in options.seeds
    ]


def _draw(results: Path, tasks: Sequence[str], figures: Path) -> None:
    """Draw the front of each task that has results: the first as front.svg, the others with their names."""
    for number, task in enumerate(tasks):
        seeds = kept_results(results / task.replace("/", "-"))
        if seeds:
            path = figures / ("front.svg" if number == 0 else f"front-{task.rpartition('/')[2]}.svg")
            path.write_text(front(task, seeds), encoding="utf-8")
            print(path)


if __name__ == "__main__":
    main()
