"""What it is worth to search for a device: HAT on Multi30k, English into German.

Settings, fixed before the first result:

- The space is `hat-nano`, the task `multi30k` (29,000 training and 1,014 validation rows, 32 tokens). One super-network
  for each seed: 3,000 steps of one random design (batch 64), which is 6.6 epochs.
- Two devices. 1: torch on one thread, one row, 30 tokens written with 5 beams (`writing_30x5_ms`). 2: ONNX Runtime on
  one thread, 8 rows, one forward pass (`onnx_batch8_ms`). Both are this processor.
- Three searches of 40 trials with the same super-network, for the smallest perplexity on validation rows: within 60 %
  of what the largest design takes on device 1, the same on device 2, and (control: one net for both) within 60 % of its
  MACs. Each winner, and the largest design, is then timed on both devices in turns; the least of three sessions counts.
- Devices: the first 12 of the designs below are timed on both; Kendall's tau between the two latencies and with MACs.
- Ranking: 25 designs, each choice drawn uniformly, are trained alone for 400 steps, and judged with the shared weights.
  Kendall's tau (b) between both validation perplexities; control: tau of the number of parameters. Intervals of 95 %
  resample the designs.

Run `python benchmarks/hat.py --data DIR [--out DIR] [--json FILE] [--seeds N] [--designs N] [--parts ...]`. What is
finished is kept in the folder, so that a benchmark that was stopped goes on. Times are worth something on an idle
machine only: `--parts timed --again` times the winners once more.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import kendalltau

from formwright.api import run
from formwright.arch.card import Card
from formwright.core.records import Request
from formwright.core.rng import derive
from formwright.cost import macs, params
from formwright.evaluate.context import Context
from formwright.evaluate.shared import Shared, SharedWeights
from formwright.nn.build import build
from formwright.nn.deploy import export
from formwright.nn.latency import measured_latency
from formwright.nn.measurement import ExportedFile, TimingSettings, measure_file
from formwright.pipeline.pipeline import Pipeline
from formwright.pipeline.search import Search
from formwright.pipeline.task_choice import TaskChoice, TrainingChoice
from formwright.pipeline.train_shared import TrainShared
from formwright.recipes import RECIPES
from formwright.search.scores import best_of
from formwright.space.zoo import load_space
from formwright.supernet.hull import find_hull
from formwright.train.fit import fit, fresh_model
from formwright.train.judge import judge
from formwright.train.prepare import prepare

Row = dict[str, Any]
SPACE = load_space("hat-nano")
TIMED = 12  # designs whose order by latency is compared between devices
STEPS, TRIALS, SHARE, ALONE, LENGTH, SITTINGS = 3_000, 40, 0.6, 400, 32, 3
TORCH, ONNX = "writing_30x5_ms", "onnx_batch8_ms"
SEARCHES = {"device 1": TORCH, "device 2": ONNX, "both": "macs"}
RESAMPLES, LEVEL = 2_000, 0.95
PARTS = ("devices", "limits", "searched", "timed", "inherited", "alone")


def times(cards: Sequence[Card]) -> list[Row]:
    """Time designs on both devices in turns, and take the least of all sessions."""
    found: list[Row] = [{TORCH: np.inf, ONNX: np.inf} for _ in cards]
    busy = False
    with tempfile.TemporaryDirectory() as folder:
        files = [
            ExportedFile(export(build(card), "onnx", Path(folder) / str(number)).path, card)
            for number, card in enumerate(cards)
        ]
        for _ in range(SITTINGS):
            for row, card, file in zip(found, cards, files, strict=True):
                writing = measured_latency(card, LENGTH, tokens=30, beams=5)
                batch = measure_file(file.path, card, TimingSettings(8, LENGTH), memory=False)
                row[TORCH], row[ONNX] = min(row[TORCH], writing.median_ms), min(row[ONNX], batch.median_ms)
                busy |= writing.busy or batch.busy
    return [
        {**row, "macs": macs(card, LENGTH), "params": params(card), "busy": busy}
        for row, card in zip(found, cards, strict=True)
    ]


def limits() -> Row:
    """Measure the largest design, by which the limits are set."""
    (largest,) = times([find_hull(SPACE).largest])
    return {"largest": largest, **{name: SHARE * largest[cost] for name, cost in SEARCHES.items()}}


def pipeline(task: TaskChoice, seed: int, bounds: Row) -> Pipeline:
    """Compose one super-network, and a search within each limit."""
    shared, search, _ = RECIPES.get("hat")(task, steps=STEPS, trials=TRIALS, seed=seed).stages
    searches = [replace(search, limits=(f"{cost}<={bounds[name]:g}",)) for name, cost in SEARCHES.items()]
    return Pipeline(shared, *searches, recipe="hat")


def searched(task: TaskChoice, seed: int, bounds: Row, out: Path) -> Row:
    """Train and search; give the winners, and how many designs were refused before they were judged."""
    done = run(pipeline(task, seed, bounds), out / f"run-{seed}").run
    found: Row = {}
    for name, stage in zip(SEARCHES, done.pipeline.of_kind(Search), strict=True):
        with done.artifact(stage) as opened:
            history = opened.history()
            best = best_of(history, opened.search.all_objectives)[0]
        assert best.observation is not None
        found[name] = {
            "card": best.request.card.to_json(),
            "perplexity": best.observation.metrics["perplexity"],
            "judged": len(history.finished),
            "refused": len(history.trials) - len(history.finished),
        }
    return found


def network(task: TaskChoice, seed: int, bounds: Row, out: Path) -> SharedWeights:
    done = run(pipeline(task, seed, bounds), out / f"run-{seed}").run
    (stage,) = done.pipeline.of_kind(TrainShared)
    found: SharedWeights = done.artifact(stage)
    return found


def timed(rows: Row, seed: int) -> Row:
    """Time the winners of a seed, and the largest design, on both devices."""
    cards = {name: Card.from_json(found["card"]) for name, found in rows[f"searched-{seed}"].items()}
    cards["largest"] = find_hull(SPACE).largest
    return dict(zip(cards, times(list(cards.values())), strict=True))


def drawn(number: int) -> list[Card]:
    """Draw the designs that are ranked."""
    rng = derive(0, "ranked")
    found: dict[str, Card] = {}
    while len(found) < number:
        card = SPACE.card(SPACE.sample(rng, "gene"))
        found.setdefault(card.digest, card)
    return list(found.values())


def inherited(shared: SharedWeights, designs: Sequence[Card]) -> list[float]:
    """Judge designs, and the largest one, with the shared weights."""
    quick = replace(
        shared, prepared=replace(shared.prepared, task=replace(shared.prepared.task, metrics=("perplexity",)))
    )
    evaluator = Shared(quick, lambda card: float(params(card)))
    cards = [*designs, find_hull(SPACE).largest]
    return [evaluator.evaluate(Request(card), Context()).metrics["perplexity"] for card in cards]


def alone(task: TaskChoice, card: Card) -> Row:
    """Train a design from fresh weights, and judge it."""
    loaded = task.load()
    prepared = prepare(replace(loaded, metrics=("perplexity",)), card, LENGTH)
    training = TrainingChoice(steps=ALONE, device="cpu", length=LENGTH).make()
    model = fit(fresh_model(card, prepared, training), prepared, training).model
    return {"params": params(card), "perplexity": judge(model, prepared, prepared.validation)["perplexity"]}


def ranking(rows: Row, designs: int, seeds: Sequence[int]) -> Row:
    """Compare the order by shared weights, and by size, with that of designs trained alone."""
    truth = np.array([rows[f"alone-{number}"]["perplexity"] for number in range(designs)])
    size = np.array([-rows[f"alone-{number}"]["params"] for number in range(designs)])
    shared = [np.array(rows[f"inherited-{seed}"][:designs]) for seed in seeds]

    def taus(some: Any) -> tuple[float, float, float]:
        own = float(np.mean([_tau(one[some], truth[some]) for one in shared]))
        by_size = _tau(size[some], truth[some])
        return own, by_size, own - by_size

    rng = derive(0, "bootstrap")
    sample = np.array([taus(rng.integers(designs, size=designs)) for _ in range(RESAMPLES)])
    ends = np.nanquantile(sample, ((1 - LEVEL) / 2, (1 + LEVEL) / 2), axis=0)
    names = ("tau", "tau of size", "difference")
    return {
        name: [value, *ends[:, number]]
        for number, (name, value) in enumerate(zip(names, taus(np.arange(designs)), strict=True))
    }


def _tau(one: Any, other: Any) -> float:
    return float(kendalltau(one, other).statistic)


def summary(rows: Row, designs: int, seeds: int) -> Row:
    """Give what is finished: the table of devices for each seed, and the ranking."""
    found: Row = {"limits": rows.get("limits"), "seeds": {}}
    if "devices" in rows:
        columns = {name: [row[name] for row in rows["devices"]] for name in (TORCH, ONNX, "macs")}
        pairs = ((TORCH, ONNX), (TORCH, "macs"), (ONNX, "macs"))
        found["devices"] = {f"{one}, {other}": _tau(columns[one], columns[other]) for one, other in pairs}
    for seed in range(seeds):
        if f"searched-{seed}" in rows and f"timed-{seed}" in rows:
            table = {
                name: {**rows[f"timed-{seed}"][name], **rows[f"searched-{seed}"].get(name, {})}
                for name in rows[f"timed-{seed}"]
            }
            found["seeds"][seed] = {
                name: {key: value for key, value in row.items() if key != "card"} for name, row in table.items()
            }
    trained = [number for number in range(designs) if f"alone-{number}" in rows]
    judged = [seed for seed in range(seeds) if f"inherited-{seed}" in rows]
    if len(trained) > 2 and judged and trained == list(range(len(trained))):
        found["ranking"] = {"designs": len(trained), "seeds": len(judged), **ranking(rows, len(trained), judged)}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/hat"))
    parser.add_argument("--json", type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--designs", type=int, default=25)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--again", action="store_true", help="repeat parts that are finished")
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    kept, task = chosen.out / "rows.jsonl", TaskChoice("multi30k", data=str(chosen.data))
    lines = kept.read_text(encoding="utf-8").splitlines() if kept.exists() else []
    rows: Row = {row["unit"]: row["found"] for row in map(json.loads, lines)}

    def once(unit: str, make: Callable[[], Any]) -> Any:
        part = unit.partition("-")[0]
        if part in chosen.parts and (chosen.again or unit not in rows):
            began = time.process_time()
            rows[unit] = make()
            with kept.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"unit": unit, "found": rows[unit], "cpu_s": time.process_time() - began}) + "\n")
            print(unit, flush=True)
        return rows.get(unit)

    bounds, designs, out = once("limits", limits), drawn(chosen.designs), chosen.out
    once("devices", lambda: times(designs[:TIMED]))
    for seed in range(chosen.seeds):
        once(f"searched-{seed}", lambda seed=seed: searched(task, seed, bounds, out))
        if f"searched-{seed}" in rows:
            once(f"timed-{seed}", lambda seed=seed: timed(rows, seed))
            once(f"inherited-{seed}", lambda seed=seed: inherited(network(task, seed, bounds, out), designs))
        if not seed:
            for number, card in enumerate(designs):
                once(f"alone-{number}", lambda card=card: alone(task, card))
    found = summary(rows, chosen.designs, chosen.seeds)
    print(json.dumps(found, indent=1))
    if chosen.json:
        chosen.json.write_text(json.dumps(found, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
