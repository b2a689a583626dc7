"""A smooth problem over any space: every gene counts, and so does every pair of genes."""

from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from formwright.core.protocols import Searcher
from formwright.core.records import History, Observation, Request
from formwright.core.rng import derive
from formwright.space import Space
from formwright.testing.toy_problem import run, tell


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

    def asks_otherwise_for_pending(self, searcher: Searcher) -> bool:
        """Tell whether a pending trial ever leads to another request than one that has failed."""
        history = run(searcher, self, 12)
        differ = []
        for length in range(6, 12):
            pending = History(
                (*history.trials[:length], replace(history.trials[length], state="pending", observation=None))
            )
            failed = tell(pending, length, "out of memory")
            differ.append(searcher.ask(pending, derive(1)) != searcher.ask(failed, derive(1)))
        return any(differ)
