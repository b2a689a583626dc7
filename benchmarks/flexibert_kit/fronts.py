"""Mixed designs against uniform ones: what the table says about quality at equal size and size at equal quality."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formwright.arch.card import Card
from formwright.core.rng import derive
from formwright.evaluate.benchmark import Benchmark

Floats = NDArray[np.float64]
RESAMPLES = 1_000


def is_uniform(card: Card) -> bool:
    """Tell whether all layers of a design are alike."""
    return len(set(card.stacks[0].layers)) == 1


@dataclass(frozen=True, eq=False)
class Kind:
    """Designs of one kind: their sizes, and their scores on validation, to choose by, and on test, to report."""

    params: Floats
    validation: Floats
    test: Floats

    def front(self) -> list[int]:
        """List the designs that no smaller one is as good as, the smallest first, by validation."""
        found, best = list[int](), -np.inf
        for row in np.lexsort((-self.validation, self.params)):
            if self.validation[row] > best:
                found.append(int(row))
                best = self.validation[row]
        return found

    def best(self, size: float = np.inf) -> float:
        """Give the test score of the best design of at most that size, by validation."""
        fitting = np.flatnonzero(self.params <= size)
        return float(self.test[fitting[np.argmax(self.validation[fitting])]]) if len(fitting) else np.nan

    def smallest(self, quality: float) -> float:
        """Give the size of the smallest design that is at least so good on validation."""
        good = self.params[self.validation >= quality]
        return float(good.min()) if len(good) else np.nan

    def some(self, number: int, seed: int) -> Kind:
        """Draw some designs."""
        rows = derive(seed, "fronts").permutation(len(self.params))[:number]
        return Kind(self.params[rows], self.validation[rows], self.test[rows])


def kinds(benchmark: Benchmark) -> dict[str, Kind]:
    """Part the tabulated designs into uniform and mixed ones."""
    cards = [benchmark.space.card(design) for design in benchmark.space.enumerate()]
    known = [card for card in cards if benchmark.legal(card)]
    rows = np.array([benchmark.row(card) for card in known])
    scores = {split: benchmark.scores(split)[rows] for split in ("validation", "test")}
    params = np.array([benchmark.costs(int(row))["params"] for row in rows])
    uniform = np.array([is_uniform(card) for card in known]) & np.isfinite(scores["validation"])
    mixed = ~uniform & np.isfinite(scores["validation"])
    return {
        name: Kind(params[mask], scores["validation"][mask], scores["test"][mask])
        for name, mask in (("uniform", uniform), ("mixed", mixed))
    }


def compare(uniform: Kind, mixed: Kind) -> dict[str, Any]:
    """Compare the best of both kinds, all designs and as many mixed as uniform ones.

    More designs have a better best one by chance alone, so the second comparison is the fair one: it draws mixed
    designs again and again, and gives the middle 90 % of what comes out.
    """
    drawn = [_compared(uniform, mixed.some(len(uniform.params), seed)) for seed in range(RESAMPLES)]
    equal = {name: np.nanquantile([one[name] for one in drawn], (0.05, 0.5, 0.95)).tolist() for name in drawn[0]}
    return {
        "designs": {"uniform": len(uniform.params), "mixed": len(mixed.params)},
        "mean": {"uniform": float(uniform.test.mean()), "mixed": float(mixed.test.mean())},
        "all": _compared(uniform, mixed),
        "equally many (5 %, median, 95 %)": equal,
    }


def _compared(uniform: Kind, mixed: Kind) -> dict[str, float]:
    chosen = int(np.argmax(uniform.validation))
    size, quality = float(uniform.params[chosen]), float(uniform.validation[chosen])
    return {
        "best uniform": uniform.best(),
        "best mixed": mixed.best(),
        "mixed minus uniform at its size": mixed.best(size) - uniform.best(),
        "times smaller at equal quality": size / mixed.smallest(quality),
    }
