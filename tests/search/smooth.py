"""A smooth problem over any space: every gene counts, and so does every pair of genes."""

from functools import cached_property
from typing import Any

import numpy as np

from formwright.core.protocols import Searcher
from formwright.core.records import Observation, Request
from formwright.core.rng import derive
from formwright.space import Space
from formwright.testing.loop import run


class Smooth:
    """Score a design by its one-hot vector: a linear function and products of pairs, drawn once."""

    def __init__(self, space: Space, seed: int = 0) -> None:
        rng = derive(seed, "smooth")
        self.space = space
        self.linear = rng.normal(size=space.width)
        self.pairs = 0.2 * np.triu(rng.normal(size=(space.width, space.width)), 1)

    def score(self, design: Any) -> float:
        point = self.space.encode(design)
        return float(self.linear @ point + point @ self.pairs @ point)

    def evaluate(self, request: Request, context: Any = None) -> Observation:
        return Observation({"accuracy": self.score(request.design)})

    @cached_property
    def sorted(self) -> Any:
        return np.sort([self.score(design) for design in self.space.enumerate()])

    def better(self, searcher: Searcher, trials: int, seed: int) -> float:
        """Return the share of all designs that are better than the best one that a search found."""
        history = run(searcher, self, trials, seed)
        best = max(trial.observation.metrics["accuracy"] for trial in history.finished if trial.observation)
        return float((self.sorted > best + 1e-9).mean())
