"""How well mini-glue tells designs apart: random designs, each trained twice for a few seconds.

For every task: the best and the median score, the spread between designs, and Kendall's tau between two seeds, with a
bootstrap interval. Designs are trained by the evaluator that searches use. Results are kept, one line a run, so that a
run that was stopped resumes where it was; other rows, or other settings of the training, restart it. One thread a
process. Run
`.venv/bin/python benchmarks/mini_glue.py [--tasks sst2 cola] [--designs 40] [--results FILE] [--json FILE]`.
"""

from __future__ import annotations

import argparse
import json
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import kendalltau

from formwright.arch.card import Card
from formwright.core.records import Request
from formwright.core.rng import derive
from formwright.cost import params
from formwright.evaluate.context import Context
from formwright.evaluate.training import Trainer
from formwright.pipeline.task_choice import TrainingChoice
from formwright.space.zoo import load_space
from formwright.tasks import MINI_GLUE, load_task

SEEDS = (0, 1)


@dataclass(frozen=True)
class Run:
    task: str
    design: int
    seed: int
    training: TrainingChoice

    @property
    def key(self) -> dict[str, Any]:
        rows = load_task(f"mini-glue/{self.task}").search_view().train.digest[:12]
        return {"task": self.task, "design": self.design, "seed": self.seed, "rows": rows, **asdict(self.training)}


def design_card(index: int) -> Card:
    """Draw a design gene by gene, so that depths are as frequent as each other."""
    space = load_space("flexibert-nano")
    return space.card(space.sample(derive(0, "mini-glue", index), by="gene"))


def execute(run: Run) -> dict[str, Any]:
    task = load_task(f"mini-glue/{run.task}")
    started = time.process_time()
    found = Trainer(task, run.training.make()).evaluate(Request(design_card(run.design)), Context(run.seed))
    seconds = time.process_time() - started
    return {**run.key, "score": found.metrics[task.metric], "seconds": round(seconds, 2)}


def stored(path: Path) -> dict[str, dict[str, Any]]:
    found = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return {json.dumps({k: v for k, v in row.items() if k not in ("score", "seconds")}): row for row in found}


def complete(runs: list[Run], path: Path, workers: int) -> list[dict[str, Any]]:
    """Run what is not stored yet and return the results of all."""
    done = stored(path)
    keys = [json.dumps(run.key) for run in runs]
    missing = [run for run, key in zip(runs, keys, strict=True) if key not in done]
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool, path.open("a") as file:
        for future in as_completed([pool.submit(execute, run) for run in missing]):
            file.write(json.dumps(future.result()) + "\n")
            file.flush()
    done = stored(path)
    return [done[key] for key in keys]


def mixers(card: Card) -> str:
    assert card.encoder is not None
    words = []
    for layer in card.encoder.layers[::2]:  # layers come in equal pairs
        mixer: Any = layer.mixer
        kind = {"attention": "score", "transform": "transform", "dynamic-convolution": "kernel"}.get(mixer.TYPE)
        words.append(f"{mixer.TYPE} {getattr(mixer, kind) if kind else ''}".strip() + f" x{layer.width}")
    return ", ".join(words)


def interval(first: np.ndarray, second: np.ndarray) -> tuple[float, float]:
    rng = derive(0, "bootstrap")
    draws = [rng.integers(len(first), size=len(first)) for _ in range(1_000)]
    taus = [kendalltau(first[rows], second[rows]).statistic for rows in draws]
    low, high = np.nanpercentile(taus, [2.5, 97.5])
    return float(low), float(high)


def summary(name: str, results: list[dict[str, Any]]) -> dict[str, Any]:
    task = load_task(f"mini-glue/{name}")
    own = sorted((row for row in results if row["task"] == name), key=lambda row: row["design"])
    scores = np.array([[row["score"] for row in own if row["seed"] == seed] for seed in SEEDS])
    mean = scores.mean(0)
    sizes = [params(design_card(index)) for index in range(len(mean))]
    low, high = interval(scores[0], scores[1])
    return {
        "task": name,
        "metric": task.metric,
        "chance": task.chance,
        "best": scores.max(),
        "median": float(np.median(mean)),
        "worst": scores.min(),
        "spread": float(mean.std(ddof=1)),
        "noise": float(np.sqrt(((scores[0] - scores[1]) ** 2).mean() / 2)),
        "tau": kendalltau(scores[0], scores[1]).statistic,
        "tau_low": low,
        "tau_high": high,
        "tau_params": kendalltau(mean, sizes).statistic,
        "seconds": float(np.median([row["seconds"] for row in own])),
        "winner": mixers(design_card(int(mean.argmax()))),
    }


def line(row: dict[str, Any]) -> str:
    tau = f"{row['tau']:.2f} ({row['tau_low']:.2f} to {row['tau_high']:.2f})"
    scores = " | ".join(f"{row[name]:.3f}" for name in ("chance", "best", "median", "worst", "spread", "noise"))
    return (
        f"| {row['task']} | {row['metric']} | {scores} | {tau} | {row['tau_params']:.2f} | {row['seconds']:.1f} | "
        f"{row['winner']} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", nargs="+", default=list(MINI_GLUE), choices=MINI_GLUE)
    parser.add_argument("--designs", type=int, default=40)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--results", type=Path, default=Path("mini_glue.jsonl"))
    parser.add_argument("--json", type=Path)
    parser.add_argument("--steps", type=int, default=TrainingChoice.steps)
    parser.add_argument("--batch", type=int, default=TrainingChoice.batch)
    parser.add_argument("--rate", type=float, default=TrainingChoice.learning_rate)
    options = parser.parse_args()
    training = TrainingChoice(options.steps, options.batch, options.rate)
    # design by design, so that every task has some results early
    designs = range(options.designs)
    runs = [Run(task, design, seed, training) for design in designs for task in options.tasks for seed in SEEDS]
    results = complete(runs, options.results, options.workers)
    rows = [summary(name, results) for name in options.tasks]
    print("\n".join(map(line, rows)))
    if options.json is not None:
        options.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
