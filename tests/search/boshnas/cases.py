"""Made-up scores of FlexiBERT designs: smooth, curved, and noisier for some designs than for others."""

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from formwright.core.records import History
from formwright.core.rng import derive
from formwright.search.boshnas.networks import Floats
from formwright.search.boshnas.searcher import ScaledListing
from formwright.search.boshnas.surrogate import Surrogate, fit
from formwright.search.listing import listing
from formwright.search.proposals import anything
from formwright.space.zoo import load_space


@cache
def points() -> Floats:
    """Return the points of all 9,312 designs."""
    terrain = ScaledListing.of(listing(load_space("flexibert-nano"), "one-hot"), anything)
    return terrain.candidates(History()).points


@dataclass(frozen=True, eq=False)
class Case:
    """Hold the true scores of all designs and the rows and noisy scores of some of them, in units of the latter."""

    truth: Floats
    noise: Floats
    rows: NDArray[np.intp]
    scores: Floats

    @property
    def unseen(self) -> NDArray[np.intp]:
        """Return the rows of the other designs."""
        return np.setdiff1d(np.arange(len(self.truth)), self.rows)

    def fit(self, rng: Generator, heteroscedastic: bool = True) -> Surrogate:
        """Fit a surrogate to the noisy scores."""
        x = points()
        return fit(x[self.rows], self.scores, x[rng.integers(len(x), size=256)], rng, heteroscedastic)


def case(seed: int, number: int = 100) -> Case:
    """Draw a problem and observe a number of designs."""
    rng, x = derive(seed, "case"), points()
    linear = x @ rng.normal(size=x.shape[1])
    pairs = np.einsum("ni,ij,nj->n", x, rng.normal(size=(x.shape[1], x.shape[1])), x)
    mixed = _standard(linear) + 0.4 * _standard(pairs)
    truth = _standard(-np.log1p(np.exp(-mixed)))  # the better, the smaller the differences, as with accuracies
    noise = np.where(x[:, 0] > 0, 0.4, 0.2)
    rows = rng.choice(len(x), size=number, replace=False)
    drawn = truth[rows] + noise[rows] * rng.normal(size=number)
    scale = drawn.std()
    return Case((truth - drawn.mean()) / scale, noise / scale, rows, _standard(drawn).astype(np.float32))


def _standard(values: Floats) -> Floats:
    return (values - values.mean()) / values.std()
