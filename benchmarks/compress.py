"""EFTNAS's claims on real tasks: smaller models out of one super-network, against what a user would pick instead.

For each task and seed a teacher is fine-tuned, and then every arm has as many steps as the super-network:
`front` is what `formwright compress` does; `orders` puts parts in order by movement, by L1 or not at all, before and
after training; `spaces` replaces Algorithm 1 by a grid of equal steps, and has 3 or 7 widths a layer; `others` are
Torch-Pruning (magnitude and Taylor) and every other layer, distilled alike, at half the MACs; `searches` compares
searches of one super-network by whole validations; `speed` measures what was found. Everything that is done is kept in
`--results`, and not done again.

Run `.venv/bin/python benchmarks/compress.py --data DIR [--tasks glue/sst2 glue/rte glue/cola] [--seeds 0 1 2]
[--parts front orders spaces others searches speed] [--results DIR] [--json FILE]`. Torch-Pruning comes with
`pip install torch-pruning`.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from compress_kit.bench import Bench, Setting
from compress_kit.networks import Arm, run, searches, untrained
from compress_kit.others import fewer_layers, torch_pruning
from compress_kit.speed import speed

PARTS = ("front", "orders", "spaces", "others", "searches", "speed")
ROWS, LENGTHS = {"glue/sst2": 8000}, {"glue/sst2": 32, "glue/cola": 32, "glue/rte": 128}
USUAL = Arm()
ORDERS = (Arm(order="movement"), Arm(order="l1"), Arm(order="none"))
SPACES = (Arm(space="grid"), Arm(configurations=3), Arm(configurations=7))
HALF = 0.5


def arms(bench: Bench, parts: list[str], evaluations: int) -> dict[str, Any]:
    """Compute what is not there yet."""
    found: dict[str, Any] = {"teacher": bench.kept("teacher", lambda: bench.judged(bench.teacher, "teacher"))}
    networks = [USUAL] if {"front", "searches", "speed"} & set(parts) else []
    networks += [*ORDERS] if "orders" in parts else []
    networks += [*SPACES] if "spaces" in parts else []
    for arm in networks:
        found[arm.name] = bench.kept(arm.name, lambda arm=arm: run(bench, arm, evaluations))  # type: ignore[misc]
    if "orders" in parts:
        found["untrained"] = bench.kept("untrained", lambda: untrained(bench))
    if "others" in parts:
        for kind in ("magnitude", "taylor"):
            name = f"torch-pruning-{kind}"
            found[name] = bench.kept(name, lambda kind=kind: torch_pruning(bench, kind, HALF))  # type: ignore[misc]
        found["fewer-layers"] = bench.kept("fewer-layers", lambda: fewer_layers(bench, HALF))
    if "searches" in parts:
        found["searches"] = bench.kept("searches", lambda: searches(bench, USUAL))
    if "speed" in parts:
        found["speed"] = bench.kept("speed", lambda: speed(bench, USUAL.name, found[USUAL.name]["at"]))
    return found


def told(task: str, seed: int, found: dict[str, Any]) -> None:
    """Print scores on validation and test, and ratios against the teacher of the same run."""
    teacher = found["teacher"]
    print(f"{task} seed {seed}: teacher {teacher['validation']:.4f} validation, {teacher['test'] or 0:.4f} test")
    for name, row in found.items():
        if "at" in row:
            for share, one in row["at"].items():
                ratio = one["validation"] / teacher["validation"] if teacher["validation"] else 0.0
                print(
                    f"  {name} at {share} ({one['macs']:.1%}): {one['validation']:.4f} validation ({ratio:.1%} of the "
                    f"teacher), {one['test'] or 0:.4f} test"
                )
            print(f"  {name}: hypervolume {row['hypervolume']:.4f}, {row['validations']:.0f} whole validations")
        elif "validation" in row and name != "teacher":
            print(f"  {name} ({row['macs']:.1%}): {row['validation']:.4f} validation, {row['test'] or 0:.4f} test")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder of GLUE")
    parser.add_argument("--tasks", nargs="+", default=["glue/sst2", "glue/rte", "glue/cola"])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--epochs", type=float, default=Setting.epochs, help="of the super-network and of every rival")
    parser.add_argument("--evaluations", type=int, default=150)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--results", type=Path, default=Path("compress-benchmark"))
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found: dict[str, Any] = {}
    for task in options.tasks:
        for seed in options.seeds:
            length = LENGTHS.get(task, 64)
            setting = Setting(
                task, str(options.data), ROWS.get(task), length, seed, options.epochs, "", options.threads
            )
            bench = Bench(setting, options.results / task.replace("/", "-") / f"seed-{seed}")
            found[f"{task} {seed}"] = arms(bench, options.parts, options.evaluations)
            told(task, seed, found[f"{task} {seed}"])
    if options.json:
        options.json.write_text(json.dumps(found, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
