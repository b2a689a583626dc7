"""A table of scores that nobody had to train for: a formula over the designs of a small space."""

from functools import cache
from typing import Any

import numpy as np

from formwright.core.rng import derive
from formwright.cost import macs, params
from formwright.evaluate.benchmark import Benchmark, ScoreTable, prefix
from formwright.space.space import Space
from formwright.testing.toy_problem import accuracy, small

MARKS = (5, 10, 20)
NOISY = 10


def fake_table(over: Space, designs: int, **facts: Any) -> ScoreTable:
    """Make a table of some designs of a space; scores rise with the steps, and the noise has a deviation of 0.01."""
    rng = derive(0, "fake table")
    listed = [over.card(design) for design in over.enumerate()]
    index = np.sort(rng.permutation(len(listed))[:designs])
    cards = [listed[number] for number in index]
    final = np.array([accuracy(card) for card in cards])
    shares = np.array(MARKS) / MARKS[-1]

    def scores(*shape: int) -> Any:
        noise = 0.01 * rng.normal(size=(*shape, len(MARKS)))
        base = final[: shape[0]].reshape(-1, *[1] * len(shape))
        return (base * shares + noise).astype(np.float32)

    noisy = min(NOISY, designs)
    return ScoreTable(
        {"space": over.name, "task": "fake", "objective": "accuracy:max", "marks": MARKS, "seeds": (0, 1, 2), **facts},
        index.astype(np.uint32),
        np.array([prefix(card.digest) for card in cards], np.uint64),
        scores(designs),
        scores(designs),
        np.array([params(card) for card in cards]),
        np.array([macs(card, 8) for card in cards]),
        np.full(designs, 2.5, np.float32),
        np.full(designs, 4.0, np.float32),
        np.arange(noisy, dtype=np.uint32),
        scores(noisy, 2),
        scores(noisy, 2),
    )


@cache
def fake_benchmark(designs: int = 200) -> Benchmark:
    """Give a benchmark of 200 of the 342 designs of the space `small`."""
    space = small()
    return Benchmark(fake_table(space, designs), space)
