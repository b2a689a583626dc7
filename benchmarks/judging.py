"""How long it takes to judge 50 sub-networks of a super-network on its validation rows, on one thread or on a GPU.

Pictures: `autoformer-nano` on `digits` (300 rows). Text: BERT-tiny with fewer heads and channels on `mini-glue/sst2`
(2,048 rows of at most 32 tokens). Translation: `hat-nano` on `translation` (1,024 rows), by perplexity. Weights are
fresh, which changes no time. Designs are judged one by one and in groups, in turns; the least of some rounds counts, in
seconds of the processor (of the clock on a GPU). `scores` is a digest of all scores, by which two versions can be
compared digit for digit; groups have the same.

Run `python benchmarks/judging.py [--rounds N] [--device cpu|cuda] [--problems NAME ...] [--together N]`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import time
from dataclasses import replace

import torch

from formwright.arch.card import Card
from formwright.core.records import Request
from formwright.core.rng import derive
from formwright.cost import macs
from formwright.evaluate.context import Context
from formwright.evaluate.shared import Shared, SharedWeights
from formwright.pipeline.task_choice import TrainingChoice
from formwright.space import Space
from formwright.space.elastic import elastic
from formwright.space.zoo import load_card, load_space
from formwright.supernet.hull import find_hull
from formwright.tasks import load_task
from formwright.train.device import choose_device
from formwright.train.fit import fresh_model
from formwright.train.prepare import prepare

DESIGNS = 50
PROBLEMS = {
    "pictures": (lambda: load_space("autoformer-nano"), "digits", 0),
    "text": (lambda: elastic(load_card("bert-tiny"), (1, 2), (128, 256, 384, 512)), "mini-glue/sst2", 32),
    "translation": (lambda: load_space("hat-nano"), "translation", 16),
}


def network(space: Space, name: str, length: int) -> SharedWeights:
    """Make a super-network that was not trained, and prepare its task."""
    task, largest = load_task(name), find_hull(space).largest
    task = replace(task, metrics=(task.metric,))
    prepared = prepare(task, largest, length)
    training = TrainingChoice(steps=1, length=length or 1, device="cpu").make()
    return SharedWeights(fresh_model(largest, prepared, training).eval(), prepared)


def drawn(space: Space) -> list[Card]:
    rng, found = derive(0, "fifty"), dict[str, Card]()
    while len(found) < min(DESIGNS, space.count()):
        card = space.card(space.sample(rng, "gene"))
        found.setdefault(card.digest, card)
    return list(found.values())


def judged(evaluator: Shared, cards: list[Card], together: int) -> list[dict[str, float]]:
    """Judge designs in groups, and give their scores."""
    requests = [(Request(card), Context()) for card in cards]
    groups = [requests[first : first + together] for first in range(0, len(requests), together)]
    return [dict(one.metrics) for group in groups for one in evaluator.evaluate_together(group)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--problems", nargs="+", choices=list(PROBLEMS), default=list(PROBLEMS))
    parser.add_argument("--together", type=int, default=8)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    clock = time.process_time if choose_device(chosen.device).type == "cpu" else time.perf_counter
    for name in chosen.problems:
        make, task, length = PROBLEMS[name]
        space = make()
        cards = drawn(space)
        evaluator = Shared(network(space, task, length), lambda card: float(macs(card)), None, device=chosen.device)
        seconds: dict[int, float] = {}
        digests: set[str] = set()
        for _ in range(chosen.rounds):
            for together in (1, chosen.together):
                began = clock()
                scores = judged(evaluator, cards, together)
                seconds[together] = min(seconds.get(together, math.inf), clock() - began)
                digests.add(hashlib.sha256(json.dumps(scores, sort_keys=True).encode()).hexdigest()[:12])
        alone, grouped = seconds[1], seconds[chosen.together]
        print(
            f"{name}: {alone:.2f} s for {len(cards)} designs one by one, {grouped:.2f} s in groups of "
            f"{chosen.together} (ratio {grouped / alone:.3f}), scores {' '.join(digests)}",
            flush=True,
        )


if __name__ == "__main__":
    main()
