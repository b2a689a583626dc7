"""How well mini-glue tells designs apart: random designs, each trained twice for a few seconds.

For every task: the best and the median score, the spread between designs, and Kendall's tau between two seeds, with a
bootstrap interval. Results are kept, one line a run, so that a run that was stopped goes on where it was; a change of
the rows or of the training begins anew. One thread a process. Run
`.venv/bin/python benchmarks/mini_glue.py [--tasks sst2 cola] [--designs 40] [--workers 2] [--results FILE]`.
"""

from __future__ import annotations

import argparse
import json
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.stats import kendalltau
from torch.nn import functional as F

from formwright.arch.card import Card
from formwright.core.rng import derive
from formwright.cost import params
from formwright.nn.build import Spread, build
from formwright.nn.heads import HeadSpec
from formwright.nn.relative import RelativePositions
from formwright.nn.settings import Settings
from formwright.space.zoo import load_space
from formwright.tasks import MINI_GLUE, load_task
from formwright.tasks.batches import Batch, batches
from formwright.tasks.encode import Encoded, encode_rows
from formwright.tasks.metrics import metric
from formwright.tasks.task import Task
from formwright.tasks.tokeniser import train_wordpiece

LENGTH = 48


@dataclass(frozen=True)
class Budget:
    steps: int = 300
    batch: int = 64
    rate: float = 2e-3
    warm_up: float = 0.3
    decay: float = 0.01
    beta: float = 0.98
    clip: float = 1.0
    dropout: float = 0.0
    start: Spread = "width"


@dataclass(frozen=True)
class Run:
    task: str
    design: int
    seed: int
    budget: Budget


@lru_cache(maxsize=4)
def prepared(name: str) -> tuple[Task, Encoded, Encoded, str]:
    task = load_task(f"mini-glue/{name}")
    view = task.search_view()
    tokeniser = train_wordpiece(view.train)
    train, validation = (encode_rows(rows, tokeniser, LENGTH) for rows in (view.train, view.validation))
    return task, train, validation, view.train.digest[:12]


def design_card(index: int) -> Card:
    """Draw a design gene by gene, so that depths are as frequent as each other, with types for two sentences."""
    space = load_space("flexibert-nano")
    card = space.card(space.sample(derive(0, "mini-glue", index), by="gene"))
    assert card.encoder is not None
    embedding = replace(card.encoder.embedding, types=2)
    return replace(card, encoder=replace(card.encoder, embedding=embedding))


@torch.no_grad()
def widen_positions(model: torch.nn.Module) -> None:
    """Bring fresh tables of relative positions from BERT's spread, 0.02, to 1, that of the keys they stand beside.

    At 0.02 attention does not see the order of words before most of a short training is over.
    """
    for module in model.modules():
        if isinstance(module, RelativePositions):
            module.keys.mul_(1 / 0.02)


def forward(model: torch.nn.Module, batch: Batch) -> torch.Tensor:
    mask = None if batch.mask.all() else torch.from_numpy(batch.mask)
    return model(torch.from_numpy(batch.tokens), mask, torch.from_numpy(batch.types))


def loss_of(scores: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    if scores.shape[1] == 1:
        # scores from 0 to 5, brought near the mean 0 and the spread 1 that a fresh head can reach quickly
        return F.mse_loss(scores[:, 0], (labels - 2.5) / 1.7)
    return F.cross_entropy(scores, labels)


def train(model: torch.nn.Module, rows: Encoded, budget: Budget, seed: int) -> None:
    """Train with AdamW, a linear warm-up and a linear decay to nothing."""
    betas = (0.9, budget.beta)
    optimiser = torch.optim.AdamW(model.parameters(), budget.rate, betas, weight_decay=budget.decay, fused=True)
    warm = max(1, round(budget.warm_up * budget.steps))
    model.train()
    step = 0
    while step < budget.steps:
        for batch in batches(rows, budget.batch, derive(seed, "batches", step)):
            factor = min((step + 1) / warm, (budget.steps - step) / (budget.steps - warm))
            for group in optimiser.param_groups:
                group["lr"] = budget.rate * factor
            optimiser.zero_grad()
            loss_of(forward(model, batch), torch.from_numpy(batch.labels)).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), budget.clip)
            optimiser.step()
            step += 1
            if step == budget.steps:
                return


@torch.inference_mode()
def evaluate(model: torch.nn.Module, rows: Encoded, name: str) -> float:
    model.eval()
    found, truth = [], []
    for batch in batches(rows, 128):
        scores = forward(model, batch)
        found.append((scores[:, 0] if scores.shape[1] == 1 else scores.argmax(1)).numpy())
        truth.append(batch.labels)
    return metric(name).compute(np.concatenate(found), np.concatenate(truth))


def execute(run: Run) -> dict[str, Any]:
    torch.set_num_threads(1)
    task, rows, validation, digest = prepared(run.task)
    card = design_card(run.design)
    head = HeadSpec("sequence-classification", max(1, len(task.labels)))
    torch.manual_seed(run.seed)  # dropout alone draws from here
    started = time.process_time()
    model = build(card, Settings(dropout=run.budget.dropout), head, run.seed, run.budget.start)
    if run.budget.start == "width":
        widen_positions(model)
    train(model, rows, run.budget, run.seed)
    seconds = time.process_time() - started
    score = evaluate(model, validation, task.metric)
    return {**key_of(run, digest), "score": score, "seconds": round(seconds, 2)}


def key_of(run: Run, digest: str) -> dict[str, Any]:
    return {"task": run.task, "design": run.design, "seed": run.seed, "rows": digest, **asdict(run.budget)}


def stored(path: Path) -> dict[str, dict[str, Any]]:
    lines = path.read_text().splitlines() if path.exists() else []
    found = [json.loads(line) for line in lines]
    return {json.dumps({k: v for k, v in row.items() if k not in ("score", "seconds")}): row for row in found}


def complete(runs: list[Run], path: Path, workers: int) -> list[dict[str, Any]]:
    """Run what is not stored yet and return the results of all."""
    done = stored(path)
    keys = [json.dumps(key_of(run, prepared(run.task)[3])) for run in runs]
    missing = [run for run, key in zip(runs, keys, strict=True) if key not in done]
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool, path.open("a") as file:
        for result in pool.map(execute, missing):
            file.write(json.dumps(result) + "\n")
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
    own = [row for row in results if row["task"] == name]
    scores = np.array([[row["score"] for row in own if row["seed"] == seed] for seed in (0, 1)])
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
        "winner_design": int(mean.argmax()),
    }


COLUMNS = ("chance", "best", "median", "worst", "spread", "noise", "tau", "tau_low", "tau_high", "tau_params")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", nargs="+", default=list(MINI_GLUE), choices=MINI_GLUE)
    parser.add_argument("--designs", type=int, default=40)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--results", type=Path, default=Path("mini_glue.jsonl"))
    parser.add_argument("--steps", type=int, default=Budget.steps)
    parser.add_argument("--batch", type=int, default=Budget.batch)
    parser.add_argument("--rate", type=float, default=Budget.rate)
    parser.add_argument("--start", choices=("width", "bert"), default=Budget.start, help="spread of fresh weights")
    options = parser.parse_args()
    budget = Budget(options.steps, options.batch, options.rate, start=options.start)
    for name in options.tasks:
        runs = [Run(name, design, seed, budget) for design in range(options.designs) for seed in (0, 1)]
        row = summary(name, complete(runs, options.results, options.workers))
        numbers = " | ".join(f"{row[column]:.3f}" for column in COLUMNS)
        print(f"| {name} | {row['metric']} | {numbers} | {row['seconds']:.1f} | {row['winner']} |", flush=True)


if __name__ == "__main__":
    main()
