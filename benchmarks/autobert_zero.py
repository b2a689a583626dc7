"""AutoBERT-Zero's claims in nano sizes: what sharing weights saves, whether OP-NAS finds more and hybrids do better.

`sharing`: pretraining from weights that random designs share against fresh ones, in steps to the same loss; and how
short scores, inherited and from scratch, rank designs against long training from scratch. `searches`: OP-NAS, also with
alpha = 0, alpha = 1 and without priorities, against random search and evolution at equal evaluations, and what the
designs found are worth after long training. `designs`: the design found, twice as deep, and the published pattern
against attentions alone, convolutions alone, other orders of kernels and a BERT as large; and how alike tokens become.
`real`: the design found against a BERT as large, pretrained on WikiText-2, on SST-2 and CoLA. Parts run what they need
of others. Every run is a line of `--results`, and is not run again; searches and real trainings that were killed go on
where they were, in the folder beside that file.

Run `.venv/bin/python benchmarks/autobert_zero.py --data DIR [--parts sharing searches designs real] [--seeds 0 1 2]
[--trials 24] [--workers 2] [--results FILE] [--json FILE] [--figures DIR] [--tiny]`; `--data` holds `glue` and
`wikitext-2`.
"""

from __future__ import annotations

import argparse
import json
import sys
from functools import partial
from pathlib import Path
from typing import Any

from autobert_zero_kit import plan
from autobert_zero_kit.real import judged
from autobert_zero_kit.report import Report
from autobert_zero_kit.runs import Job, Results, Row
from autobert_zero_kit.searches import OP_NAS, searched
from autobert_zero_kit.setting import Nano, Setting, tiny
from autobert_zero_kit.trainings import compared, long_trained


def execute(setting: Setting, folder: Path, data: Path, job: Job) -> Row:
    """Do one run, in whichever process."""
    if job.kind == "real":
        return judged(setting, folder, data, job)
    return {"search": searched, "long": long_trained, "curve": compared}[job.kind](setting, folder, job)


def complete(results: Results, options: argparse.Namespace) -> None:
    """Make the runs of the parts wanted that are not there yet; which they are depends on those before."""
    setting, parts, seeds = results.setting, options.parts, options.seeds
    work = partial(execute, setting, results.folder, options.data)
    run = partial(results.complete, execute=work, workers=options.workers)
    run(plan.searches(parts, seeds))
    later: list[Job] = []
    if "sharing" in parts:
        later += [*plan.curves(setting, seeds), *plan.ranked(setting, results, seeds)]
    arms = plan.arms_of(parts) if "searches" in parts else [OP_NAS]
    if set(parts) - {"sharing"}:
        later += plan.retrained(setting, results, arms, seeds)
    run(later)
    if {"designs", "real"} & set(parts):
        found = plan.found_card(setting, results, seeds)
        run(plan.designs(found, seeds) if "designs" in parts else [])
        run(plan.real(setting, found, seeds) if "real" in parts else [])


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=plan.PARTS, default=list(plan.PARTS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="the folder of GLUE and WikiText-2")
    parser.add_argument("--trials", type=int, default=Nano.trials, help="designs that each search evaluates")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--results", type=Path, default=Path("autobert-zero.jsonl"), help="the file that keeps runs")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--figures", type=Path, help="the folder for figures")
    parser.add_argument("--tiny", action="store_true", help="try every part in seconds; the figures mean nothing")
    return parser.parse_args()


def main() -> None:
    options = arguments()
    setting = tiny() if options.tiny else Setting(Nano(trials=options.trials))
    results = Results(options.results, setting)
    expected = plan.estimate(setting, options.parts, options.seeds)
    print(f"CPU minutes in all, if nothing is there yet: {sum(expected.values()):.0f} {expected}", file=sys.stderr)
    complete(results, options)
    report = Report(results, options.seeds)
    found: dict[str, Any] = {part: getattr(report, part)() for part in options.parts}
    print(json.dumps(found, indent=1))
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    if options.figures:
        options.figures.mkdir(parents=True, exist_ok=True)
        for name, drawing in report.figures(options.parts).items():
            (options.figures / f"autobert-zero-{name}.svg").write_text(drawing, encoding="utf-8")


if __name__ == "__main__":
    main()
