"""FlexiBERT's claims on FlexiBench: which method finds the best designs soonest, and whether mixed designs are better.

`contest`: searches of 100 evaluations with every method, one-hot and on Transformer2vec, and BOSHNAS without each of
its parts. `surrogate`: calibration and order of its predictions, and whether GOBI finds the highest bound. `fronts`:
mixed designs against designs of equal layers. `inverted`: the contest on a table in which the best design is the worst,
where whoever merely takes large designs loses. Writes JSON and figures. Searches are kept in `--results`, so that a
contest that was stopped goes on. Run `.venv/bin/python benchmarks/flexibert.py [--parts contest surrogate fronts
inverted] [--methods boshnas ...] [--runs 50] [--table FILE] [--results FILE] [--json FILE] [--figures FOLDER]`.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from charts import Line, chart
from flexibert_kit.fronts import Kind, compare, kinds
from flexibert_kit.surrogate import judged, size_axis

from formwright.evaluate.benchmark import Benchmark, ScoreTable, load_flexibench
from formwright.study.contest import Contest, ContestFile, find_methods, standings

EVALUATIONS = 100
EARLY = 30  # evaluations, after which scores still differ by more than the luck of the rows
SHOWN = (
    "random",
    "largest-first",
    "largest-first/rank",
    "regularized-evolution",
    "reinforce",
    "gp-bo",
    "bananas",
    "tpe",
    "boshnas",
    "boshnas/one-hot",
    "forest",
)
METHODS = (
    *SHOWN,
    "gp-bo/one-hot",
    "bananas/one-hot",
    "bananas/transformer2vec",
    "boshnas/ordered",
    "boshnas/one-hot-eager",
    "boshnas/nearest",
    "boshnas/exhaustive",
    "boshnas/first-order",
    "boshnas/homoscedastic",
)


def contest(options: argparse.Namespace, table: Path | None, benchmark: Benchmark) -> dict[str, Any]:
    """SearchRun the searches that are not there yet, and sum all of them up."""
    methods = find_methods(options.methods or METHODS)
    wanted = Contest(partial(load_flexibench, table), methods, options.runs, EVALUATIONS)
    file = ContestFile(options.results, benchmark.table.digest)
    known = wanted.known(file.read())
    total, found = len(methods) * options.runs, list(known)
    for one in file.keep(wanted.replays(options.workers, known)):
        found.append(one)
        if len(found) % 20 == 0:
            print(f"{len(found):,} of {total:,} searches", file=sys.stderr, flush=True)
    return standings(benchmark, found)


def inverted(table: ScoreTable) -> ScoreTable:
    """Turn scores round, so that the best design has the score of the worst; costs stay."""

    def turned(split: str) -> dict[str, Any]:
        scores, noise = getattr(table, split), getattr(table, f"noise_{split}")
        total = np.nanmax(scores) + np.nanmin(scores)
        return {split: total - scores, f"noise_{split}": total - noise}

    return replace(table, **turned("validation"), **turned("test"))


def curves(standing: dict[str, Any], benchmark: Benchmark) -> str:
    """Draw the best score so far over the evaluations, averaged over the searches, with its 90 % interval."""
    steps = list(range(1, EVALUATIONS + 1))
    lines = [
        Line(name, steps, found["curve"], found["curve_low"], found["curve_high"], dashed=name == "random")
        for name, found in standing.items()
        if name in SHOWN
    ]
    from_third = float(np.mean([line.y[2] for line in lines]))
    title = f"Best of {len(benchmark.table):,} designs so far"
    return chart(title, lines, "evaluations", "validation score", y_from=from_third)


def drawn_fronts(found: dict[str, Kind]) -> str:
    """Draw the better designs of both kinds, and the front of each: chosen by validation, shown by validation."""
    lowest = float(np.quantile(np.concatenate([kind.validation for kind in found.values()]), 0.3))
    lines = []
    for name, kind in found.items():
        shown = kind.validation >= lowest
        lines.append(Line(f"{name} designs", kind.params[shown] / 1e3, kind.validation[shown], dots=True))
    for name, kind in found.items():
        front = kind.front()
        lines.append(Line(f"front of the {name}", kind.params[front] / 1e3, kind.validation[front]))
    title = "Mixed designs and designs of equal layers"
    return chart(title, lines, "thousand parameters", "validation score", y_from=lowest, log_x=True)


def table_of(standing: dict[str, Any]) -> str:
    """Print the standings as a table in Markdown."""
    head = (
        f"{EARLY} evaluations: validation",
        f"{EARLY}: test",
        f"{EVALUATIONS}: validation",
        f"{EVALUATIONS}: test",
        *(f"best {next(iter(standing.values()))[best]['designs']} designs, after" for best in ("top", "good")),
        "CPU s a search",
    )
    lines = [" | ".join(("| method", *head)) + " |", "|---" * (len(head) + 1) + "|"]
    for name, found in standing.items():
        early, tested = (
            [found[f"{curve}{end}"][EARLY - 1] for end in ("", "_low", "_high")] for curve in ("curve", "test_curve")
        )
        cells = (
            _with_interval(*early),
            _with_interval(*tested),
            _with_interval(found["final"], *found["interval"]),
            _with_interval(found["test"], *found["test_interval"]),
            *(f"{found[best]['share']:.0%}, {_after(found[best])}" for best in ("top", "good")),
            f"{found['seconds']:.1f}",
        )
        lines.append(" | ".join((f"| {name}", *cells)) + " |")
    return "\n".join(lines)


def _with_interval(mean: float, low: float, high: float) -> str:
    return f"{mean:.4f} [{low:.4f}, {high:.4f}]"


def _after(best: dict[str, Any]) -> str:
    return "-" if best["evaluations"] is None else f"{best['evaluations']:.0f}"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = ("contest", "surrogate", "fronts", "inverted")
    parser.add_argument("--parts", nargs="+", choices=parts, default=parts)
    parser.add_argument("--methods", nargs="+", help="the methods of contest and inverted; without it, all")
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--repeats", type=int, default=20, help="fits of each surrogate")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--table", type=Path, help="another table than the one that is built in")
    parser.add_argument("--results", type=Path, default=Path("flexibert.jsonl"), help="the file that keeps searches")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--figures", type=Path, help="the folder for figures")
    return parser.parse_args()


def main() -> None:
    options = arguments()
    benchmark = load_flexibench(options.table)
    result: dict[str, Any] = {"designs": len(benchmark.table), "runs": options.runs, "evaluations": EVALUATIONS}
    figures: dict[str, str] = {}
    if "fronts" in options.parts:
        found = kinds(benchmark)
        result["fronts"], figures["flexibert-fronts"] = compare(**found), drawn_fronts(found)
        print(json.dumps(result["fronts"], indent=1))
    if "surrogate" in options.parts:
        result["surrogate"] = {"size axis": size_axis(benchmark), **judged(benchmark, options.repeats)}
        print(json.dumps(result["surrogate"], indent=1))
    if "contest" in options.parts:
        result["methods"] = contest(options, options.table, benchmark)
        figures["flexibert-contest"] = curves(result["methods"], benchmark)
        print(table_of(result["methods"]))
    if "inverted" in options.parts:
        path = options.results.with_suffix(".inverted.npz")
        inverted(benchmark.table).write(path)
        result["inverted"] = contest(options, path, load_flexibench(path))
        print(table_of(result["inverted"]))
    for name, text in figures.items() if options.figures else ():
        (options.figures / f"{name}.svg").write_text(text, encoding="utf-8")
    if options.json:
        options.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
