"""NAS-BERT's claims on a finished compression: does the sum of block losses order students, and what are they worth?

`tau` draws whole chains from the tables and compares the sum of their losses with their distance from the teacher;
`survivors` trains chains that the first round kept, and chains that it dropped from the same bin, alone and equally
long; `latency` compares milliseconds that were added up with measured ones; `tasks` teaches two chains of BERT's shape
within each size, one with the largest body and one whose token table is as wide as its layers, and the best that is
found with at most the parameters of the first, equally long on the same text, and fine-tunes all of them on each task
with the answers of the fine-tuned teacher. Only `found-fresh` begins as they do, with fresh layers; `found` has those
of its blocks, which were trained before. Every result is a line of `--results`, and is not computed again for the same
compression and effort. Tables in Markdown are printed when all is there, and `--json` keeps the facts behind them.

Run `.venv/bin/python benchmarks/nas_bert.py DIR [DIR ...] --data GLUE [--parts tau ...] [--seeds 0 1 2] [--results
FILE] [--json FILE] [--figures DIR]`, where DIR is what `formwright compress --recipe nas-bert --out DIR` delivered.
With one DIR the seeds vary what is drawn, taught and fine-tuned; with as many as there are seeds, each has its own.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from nas_bert_kit.bench import Bench, Results
from nas_bert_kit.figures import figures
from nas_bert_kit.scores import additive, alone, pairs, timed
from nas_bert_kit.students import ARMS, Effort, Lesson
from nas_bert_kit.summary import Facts, added_up, markdown, ordered, won

from formwright.core.errors import IllegalInput
from formwright.tasks import FROM_DATA
from formwright.train.device import threads

PARTS = ("tau", "survivors", "latency", "tasks")
TASKS = ("glue/sst2", "glue/cola", "glue/rte")


def tau(bench: Bench, number: int) -> Facts:
    """Order whole students by the sum of their blocks' losses."""
    keys = [f"{bench.mark()}/{one}" for one in range(number)]
    return ordered([bench.results.kept("tau", key, partial(additive, bench, one)) for one, key in enumerate(keys)])


def latency(bench: Bench, number: int) -> Facts:
    """Compare sums of milliseconds with measured ones."""
    return added_up(bench.results.kept("latency", f"{bench.mark()}/{number}", partial(timed, bench, number))["times"])


def survivors(bench: Bench, number: int, steps: int) -> Facts:
    """Train chains that stayed and chains that were dropped, equally long."""
    found = []
    for block in range(bench.source.menu.blocks):
        for place, pair in enumerate(pairs(bench, block, number)):
            rows = []
            for name, chain in zip(("stayed", "dropped"), pair, strict=True):
                key = f"{bench.mark({'steps': steps})}/{block}/{place}/{name}"
                rows.append(bench.results.kept("survivors", key, partial(alone, bench, block, chain, steps)))
            found.append((rows[0], rows[1]))
    return won(found)


def tasks(benches: Sequence[Bench], data: Path | None, name: str, effort: Effort) -> Facts:
    """Fine-tune found chains and chains of BERT's shape on a task, once for each seed."""
    teacher, sizes = list[float](), dict[str, Facts]()
    if len({bench.choices.sizes for bench in benches}) > 1:
        raise IllegalInput("the compressions have different sizes: name folders of the same --sizes")
    for bench in benches:
        mark, lesson, kept = bench.mark(asdict(effort)), Lesson(bench, name, data, effort), bench.results.kept
        teacher.append(kept("tasks", f"{mark}/{name}/teacher", lambda lesson=lesson: lesson.teacher[1])["score"])  # type: ignore[misc]
        for size in bench.choices.asked:
            for arm in ARMS:
                row = kept("tasks", f"{mark}/{name}/{size.name}/{arm}", partial(lesson.fine_tuned, size.name, arm))
                entry = sizes.setdefault(size.name, {}).setdefault(arm, {"params": [], "scores": []})
                entry["params"].append(row["params"])
                entry["scores"].append(row["score"])
    return {"teacher": teacher, "sizes": sizes}


def benches_of(folders: Sequence[Path], results: Results, seeds: Sequence[int]) -> list[Bench]:
    """Give each seed its compression; one alone serves all of them."""
    several = list(folders) * (len(seeds) if len(folders) == 1 else 1)
    return [Bench(out, results, seed) for out, seed in zip(several, seeds, strict=True)]


def complete(chosen: argparse.Namespace) -> dict[str, Any]:
    """Compute what is not there yet, and give the facts of all parts."""
    benches = benches_of(chosen.out, Results(chosen.results), chosen.seeds)
    found: dict[str, Any] = {"seeds": chosen.seeds}
    if "tau" in chosen.parts:
        found["tau"] = [tau(bench, chosen.students) for bench in benches]
    if "latency" in chosen.parts:
        found["latency"] = [latency(bench, chosen.students) for bench in benches]
    if "survivors" in chosen.parts:
        found["survivors"] = [survivors(bench, chosen.pairs, chosen.steps) for bench in benches]
    if "tasks" in chosen.parts:
        effort = Effort(chosen.steps, chosen.epochs, chosen.rows, chosen.length)
        found["tasks"] = {name: tasks(benches, chosen.data, name, effort) for name in chosen.tasks}
    return found


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line, and refuse what does not fit together."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, nargs="+", metavar="DIR")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--tasks", nargs="+", default=TASKS)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--results", type=Path, default=Path("nas_bert.jsonl"))
    parser.add_argument("--json", type=Path)
    parser.add_argument("--figures", type=Path, help="the folder for figures")
    parser.add_argument("--students", type=int, default=60)
    parser.add_argument("--pairs", type=int, default=8)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--epochs", type=float, default=3)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--length", type=int, default=48)
    chosen = parser.parse_args(given)
    if len(chosen.out) not in (1, len(chosen.seeds)):
        parser.error(f"{len(chosen.out)} compressions and {len(chosen.seeds)} seeds: name one, or one for each seed")
    lacking = [name for name in chosen.tasks if name in FROM_DATA and chosen.data is None]
    if "tasks" in chosen.parts and lacking:
        parser.error(f"the part tasks reads {', '.join(lacking)} from files: name their folder with --data DIR")
    return chosen


def main(given: Sequence[str] | None = None) -> None:
    """Compute what is not there yet, and print all of it."""
    chosen = arguments(given)
    with threads(1):
        found = complete(chosen)
    print(markdown(found))
    if chosen.json:
        chosen.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    if chosen.figures:
        chosen.figures.mkdir(parents=True, exist_ok=True)
        for name, drawing in figures(found).items():
            (chosen.figures / f"nas-bert-{name}.svg").write_text(drawing, encoding="utf-8")


if __name__ == "__main__":
    main()
