"""EFTNAS's claims on real tasks: smaller models out of one super-network, against what a user would pick instead.

For each task and seed a teacher is fine-tuned, which all arms share:
`front` is what `formwright compress` does, beside sub-networks of the same super-network drawn at random;
`orders` puts parts in order by movement, by L1 or not at all, before and after training, in one and the same space;
`spaces` replaces Algorithm 1 by a grid of equal steps, and has 3 or 7 widths a layer;
`others` are Torch-Pruning (magnitude and Taylor) and fewer layers at half the MACs, distilled for as many steps as the
super-network; `fronts` are the same rivals at each share of the MACs, in as many steps for all shares together;
`searches` compares searches of one super-network by whole validations; `speed` measures what was found.
`fair` gives every arm the same processor time for its whole front (`--minutes`); compress_kit/fair.py says how. It runs
only when it is named.
Where a task has more training rows than are learned from, models are judged on further ones too.
Hypervolumes are those of one model for each share, for every arm. Everything that is done is kept in `--results`, and
not done again; several processes may work there, each at an arm of its own. In the end the mean and the range of all
seeds that are kept are printed, and the table of `fair`. `--ablation-epochs 2 --ablation-evaluations 60` shortens
orders and spaces, and adds a usual arm of that length to compare them with.

Run `.venv/bin/python benchmarks/compress.py --data DIR [--tasks glue/sst2 glue/rte glue/cola] [--seeds 0 1 2]
[--parts front ...] [--rivals fewer-layers ...] [--results DIR] [--json FILE]`. `--figures DIR` draws the front of each
task from what is kept, and computes nothing. `--quick` runs every part on a tiny model. Torch-Pruning comes with
`pip install -c constraints.txt -r benchmarks/requirements.txt`.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from compress_kit.arms import PARTS, arms
from compress_kit.bench import SPLITS, Bench, Row, Setting
from compress_kit.figures import fair_front, front, kept_results
from compress_kit.intervals import fair_folders, fair_table, markdown, references
from compress_kit.others import NEED_PRUNING, RIVALS
from compress_kit.quick import quick
from compress_kit.summary import lines, summary

ROWS, LENGTHS = {"glue/sst2": 8000}, {"glue/sst2": 32, "glue/cola": 32}  # the others have 64 tokens


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
    return ", ".join(f"{row[split]:.4f} {split}" for split in SPLITS if row.get(split) is not None)


def main(arguments: Sequence[str] | None = None) -> None:
    options = _options(arguments)
    if options.figures:
        _draw(options.results, options.tasks, options.figures)
        return
    missing = [name for name in options.rivals if name in NEED_PRUNING and find_spec("torch_pruning") is None]
    if missing and {"others", "fronts", "fair"} & set(options.parts):
        raise SystemExit(
            f"{', '.join(missing)} need Torch-Pruning: pip install -c constraints.txt -r benchmarks/requirements.txt, "
            "or leave them out with --rivals fewer-layers"
        )
    found: dict[str, Any] = {}
    for setting in _settings(options):
        bench = Bench(setting, options.results / _folder(setting.task) / f"seed-{setting.seed}")
        bench.claim()
        found[f"{setting.task} {setting.seed}"] = rows = arms(bench, options.parts, options.rivals)
        told(setting.task, setting.seed, rows)
    tasks = list(dict.fromkeys(setting.task for setting in _settings(options)))
    found["summary"] = {task: summary(kept_results(options.results / _folder(task))) for task in tasks}
    for task in tasks:
        print(f"{task}, all seeds that are kept:", *lines(found["summary"][task]), sep="\n")
        if folders := fair_folders(options.results / _folder(task)):
            found["fair"] = {task: fair_table(folders) | references(folders)}
            print(markdown(fair_table(folders), references(folders)))
    if options.json:
        options.json.write_text(json.dumps(found, indent=1), encoding="utf-8")


def _folder(task: str) -> str:
    return task.replace("/", "-")


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="the folder of GLUE")
    parser.add_argument("--tasks", nargs="+", default=["glue/sst2", "glue/rte", "glue/cola"])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=[one for one in PARTS if one != "fair"])
    parser.add_argument("--rivals", nargs="+", choices=list(RIVALS), default=list(RIVALS))
    parser.add_argument("--teacher-epochs", type=float, default=Setting.teacher_epochs)
    parser.add_argument("--epochs", type=float, default=Setting.epochs, help="of the super-network and of every rival")
    parser.add_argument("--evaluations", type=int, default=Setting.evaluations)
    parser.add_argument("--ablation-epochs", type=float, help="of orders and spaces, and of a usual arm beside them")
    parser.add_argument("--ablation-evaluations", type=int, help="of the same arms")
    parser.add_argument("--minutes", type=float, help="processor time of each arm of the part fair")
    parser.add_argument("--further", type=int, default=Setting.further, help="held-out rows of the training file")
    parser.add_argument("--threads", type=int, default=Setting.threads)
    parser.add_argument("--results", type=Path, default=Path("compress-benchmark"))
    parser.add_argument("--json", type=Path)
    parser.add_argument("--figures", type=Path, help="draw what is kept into this folder, and compute nothing")
    parser.add_argument("--quick", action="store_true", help="a tiny model and a builtin task, to see that all runs")
    return parser.parse_args(arguments)


def _settings(options: argparse.Namespace) -> list[Setting]:
    ablation = None
    if options.ablation_epochs or options.ablation_evaluations:
        ablation = (options.ablation_epochs or options.epochs, options.ablation_evaluations or options.evaluations)
    if options.quick:
        return [replace(quick(options.results), ablation=ablation, minutes=options.minutes)]
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
            teacher_epochs=options.teacher_epochs,
            ablation=ablation,
            further=options.further,
            minutes=options.minutes,
        )
        for task in options.tasks
        for seed in options.seeds
    ]


def _draw(results: Path, tasks: Sequence[str], figures: Path) -> None:
    """Draw the front of each task that has results: the first as front.svg, the others with their names."""
    for number, task in enumerate(tasks):
        seeds, folders = kept_results(results / _folder(task)), fair_folders(results / _folder(task))
        if seeds:
            path = figures / ("front.svg" if number == 0 else f"front-{task.rpartition('/')[2]}.svg")
            path.write_text(fair_front(task, folders) if folders else front(task, seeds), encoding="utf-8")
            print(path)


if __name__ == "__main__":
    main()
