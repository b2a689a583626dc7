"""What weights from a neighbour save, and what they cost: against pretraining every design (FlexiBERT, appendix B.2).

A query is pretrained on the text of mini-glue/sst2 and fine-tuned on it; or it takes the weights of a neighbour, which
was pretrained and fine-tuned before, and is only fine-tuned; or it is fine-tuned from fresh weights. The neighbour has
a share of the query's layers, counted from the input:

- 1.0: the query has two layers, the neighbour these and two more. Layers counted whole, designs of two or four layers
  can only reach the paper's threshold of 0.8 in this way: three layers of four are 0.75.
- 0.75: of four free layers the first three are the same.
- 0.5: of two pairs of layers the first is the same.

Time saved is that of the query alone. What a search saves depends on how many designs find a neighbour: for random
designs of flexibert-nano, evaluated one after the other, that share is printed for several thresholds. The paper: 38 %
less time for a model on average, 0.7 points of GLUE lost.

Run `python benchmarks/transfer.py [--json FILE] [--rows FILE] [--queries N] [--seeds N]`. Finished queries are kept in
the rows file, so that a benchmark that was stopped goes on.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from formwright.arch.card import Card
from formwright.arch.distance import overlap_fraction
from formwright.core.records import History, Observation, Request, Trial
from formwright.core.rng import derive
from formwright.evaluate.context import Context
from formwright.evaluate.inherited import Inherited, Pretrained, Pretraining
from formwright.evaluate.training import Trainer
from formwright.pipeline.task_choice import TrainingChoice
from formwright.space import Fields
from formwright.space.zoo import load_space
from formwright.tasks import load_task

Row = dict[str, Any]
TASK = "mini-glue/sst2"
FREE, PAIRS = load_space("flexibert-nano-s1"), load_space("flexibert-nano")
LAYERS = [design["layers"][0] for design in islice(PAIRS.enumerate(), 96)]  # designs of one pair come first
OVERLAPS = (1.0, 0.75, 0.5)
THRESHOLDS = (0.8, 0.5)
SEARCHED = 100  # designs of a search
WAYS = ("pretrained", "transferred", "fresh")


def pair(overlap: float, number: int) -> tuple[Card, Card]:
    """Draw a query and a neighbour that has that share of its layers."""
    rng = derive(0, "pair", str(overlap), number)
    first = derive(0, "first layers").permutation(len(LAYERS))[number % len(LAYERS)]
    while True:
        a, (b, c, d, e) = LAYERS[first], (LAYERS[index] for index in rng.integers(len(LAYERS), size=4))
        layers = {
            1.0: ((a, a), (a, a, b, b)),
            0.75: ((a, b, c, d), (a, b, c, e)),
            0.5: ((a, a, b, b), (a, a, c, c)),
        }[overlap]
        query, neighbour = (FREE.card(Fields.of(layers=found)) for found in layers)
        if overlap_fraction(query, neighbour) == overlap:
            return query, neighbour


def measure(overlap: float, number: int, seed: int, steps: int, pretrain_steps: int) -> Row:
    """Train one query in three ways, its neighbour before."""
    query, neighbour = pair(overlap, number)
    trainer = Trainer(load_task(TASK), TrainingChoice(steps=steps).make())
    pretraining = Pretraining(TrainingChoice(steps=pretrain_steps).make())
    evaluator = Pretrained(Inherited(trainer, overlap), pretraining)
    with tempfile.TemporaryDirectory() as folder:
        context = Context(seed, Path(folder))
        trained = Trial(0, Request(neighbour), "finished", evaluator.evaluate(Request(neighbour), context))
        beside = Context(seed, Path(folder), History((trained,)))
        found = {
            "pretrained": timed(evaluator, query, context),
            "transferred": timed(evaluator, query, beside),
            "fresh": timed(trainer, query, context),
        }
    assert found["transferred"]["from"] == "0"
    return {"overlap": overlap, "query": number, "seed": seed, "steps": [steps, pretrain_steps], **found}


def timed(evaluator: Pretrained | Trainer, card: Card, context: Context) -> Row:
    began = time.process_time()
    found: Observation = evaluator.evaluate(Request(card), context)
    seconds = time.process_time() - began
    source = found.artifacts.get("relative", "")
    return {"score": found.metrics["accuracy"], "cpu_s": seconds, "steps": found.spent.steps, "from": source}


def spared(threshold: float, searches: int = 20) -> float:
    """Return the share of random designs, one after the other, that find a neighbour among those before them."""
    shares = []
    for seed in range(searches):
        cards = drawn(seed)
        found = [
            any(overlap_fraction(card, other) >= threshold for other in cards[:index])
            for index, card in enumerate(cards)
        ]
        shares.append(np.mean(found))
    return float(np.mean(shares))


def drawn(seed: int, number: int = SEARCHED) -> list[Card]:
    """Draw different random designs; a search asks for none twice."""
    rng = derive(seed, "searched")
    cards: dict[str, Card] = {}
    while len(cards) < number:
        card = PAIRS.card(PAIRS.sample(rng, "gene"))
        cards.setdefault(card.digest, card)
    return list(cards.values())


def summary(rows: Sequence[Row]) -> Row:
    """Give for each overlap the time saved and the score lost, with 90 % intervals over the queries."""
    result: Row = {"spared": {str(threshold): spared(threshold) for threshold in THRESHOLDS}, "overlaps": {}}
    for overlap in OVERLAPS:
        own = [row for row in rows if row["overlap"] == overlap]
        if not own:
            continue
        seconds = {way: column(own, way, "cpu_s") for way in WAYS}
        score = {way: column(own, way, "score") for way in WAYS}
        result["overlaps"][str(overlap)] = {
            "queries": len({row["query"] for row in own}),
            "runs": len(own),
            "time_saved": interval(1 - seconds["transferred"] / seconds["pretrained"]),
            "score": {way: interval(score[way]) for way in WAYS},
            "score_lost": interval(score["pretrained"] - score["transferred"]),
            "score_lost_without_either": interval(score["pretrained"] - score["fresh"]),
        }
    return result


def column(rows: Sequence[Row], way: str, name: str) -> np.ndarray:
    """Return the mean of each query over its seeds."""
    queries = sorted({row["query"] for row in rows})
    return np.array([np.mean([row[way][name] for row in rows if row["query"] == query]) for query in queries])


def interval(sample: np.ndarray) -> list[float]:
    """Return the mean and its 90 % bootstrap interval."""
    drawn = derive(0, "bootstrap").choice(sample, (10_000, len(sample))).mean(axis=1)
    return [float(sample.mean()), *map(float, np.quantile(drawn, (0.05, 0.95)))]


def read(rows: Path) -> list[Row]:
    return [json.loads(line) for line in rows.read_text(encoding="utf-8").splitlines()] if rows.exists() else []


def show(figures: Row) -> None:
    for threshold, share in figures["spared"].items():
        print(f"of {SEARCHED} random designs, {share:.0%} find a neighbour with an overlap of {threshold} or more")
    for overlap, found in figures["overlaps"].items():
        saved, lost, plain = (found[name] for name in ("time_saved", "score_lost", "score_lost_without_either"))
        print(
            f"overlap {overlap}: {saved[0]:.0%} [{saved[1]:.0%}, {saved[2]:.0%}] of the time saved, "
            f"{lost[0]:+.4f} [{lost[1]:+.4f}, {lost[2]:+.4f}] accuracy lost; "
            f"{plain[0]:+.4f} [{plain[1]:+.4f}, {plain[2]:+.4f}] without pretraining or transfer ({found['runs']} runs)"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--rows", type=Path, default=Path("transfer.jsonl"), help="where finished queries are kept")
    parser.add_argument("--queries", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--pretrain-steps", type=int, default=300)
    arguments = parser.parse_args()
    steps = [arguments.steps, arguments.pretrain_steps]
    known = {(row["overlap"], row["query"], row["seed"]) for row in read(arguments.rows) if row["steps"] == steps}
    for seed in range(arguments.seeds):
        for number in range(arguments.queries):
            for overlap in OVERLAPS:
                if (overlap, number, seed) not in known:
                    with arguments.rows.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(measure(overlap, number, seed, *steps)) + "\n")
    rows = [row for row in read(arguments.rows) if row["steps"] == steps]
    rows = [row for row in rows if row["seed"] < arguments.seeds and row["query"] < arguments.queries]
    figures = summary(rows) | {"task": TASK, "steps": steps[0], "pretrain_steps": steps[1], "seeds": arguments.seeds}
    show(figures)
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
