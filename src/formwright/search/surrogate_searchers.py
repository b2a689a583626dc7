"""Searchers that predict scores over points of designs.

A Gaussian process (Snoek et al., 2012), and a random forest as in SMAC (Hutter et al., 2011).
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Literal

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.linalg import cho_solve, cholesky, eigh, solve_triangular
from scipy.spatial.distance import cdist

from formwright.core.options import option
from formwright.search.candidates import SurrogateSearch, TrainingData, expected_improvement
from formwright.search.listing import Coordinates

Floats = NDArray[np.float64]

# length scales as multiples of the median distance, and noise as a share of the signal's variance
LENGTHS = np.geomspace(0.2, 20.0, 13)
NOISES = np.geomspace(1e-4, 3.0, 20)
_TINY = 1e-12


@dataclass(frozen=True)
class Scales:
    """Hold the length scale of the kernel, the noise as a share of the signal's variance, and that variance."""

    length: float
    noise: float
    variance: float


@dataclass(frozen=True, eq=False)
class GaussianProcess:
    """Hold what was observed where, and the scales; `values` are taken to have mean 0."""

    points: Floats  # (observations, dimensions)
    values: Floats  # (observations,)
    scales: Scales

    def predict(self, queries: NDArray[np.floating[Any]]) -> tuple[Floats, Floats]:
        """Return the mean and the standard deviation of the noiseless value at each query."""
        covariance = _matern(cdist(self.points, self.points) / self.scales.length)
        lower = cholesky(covariance + self.scales.noise * np.eye(len(covariance)), lower=True)
        cross = _matern(cdist(self.points, queries) / self.scales.length)  # (observations, queries)
        mean: Floats = cho_solve((lower, True), self.values) @ cross
        explained = np.square(solve_triangular(lower, cross, lower=True)).sum(axis=0)
        return mean, np.sqrt(self.scales.variance * np.maximum(1.0 - explained, _TINY))

    def believe(self, points: Floats) -> GaussianProcess:
        """Return this process with its own predictions at more points as observations."""
        if not len(points):
            return self
        values = np.concatenate([self.values, self.predict(points)[0]])
        return GaussianProcess(np.concatenate([self.points, points]), values, self.scales)


def fit(points: Floats, values: Floats) -> GaussianProcess:
    """Return the process of the highest likelihood, over a grid of length scales and noises.

    One eigendecomposition serves all noises of a length scale, and the best variance is known in closed form, so the
    grid is cheaper than gradient ascent and has no local optima.
    """
    distances = cdist(points, points)
    apart = distances[distances > 0.0]
    unit = float(np.median(apart)) if len(apart) else 1.0
    found = [_likeliest(distances, values, unit * length) for length in LENGTHS.tolist()]
    return GaussianProcess(points, values, max(found, key=itemgetter(0))[1])


def _likeliest(distances: Floats, values: Floats, length: float) -> tuple[float, Scales]:
    """Return the best noise and variance for a length scale, with their log-likelihood up to a constant."""
    spectrum, axes = eigh(_matern(distances / length))
    spectra = np.maximum(spectrum, 0.0) + NOISES[:, None]  # (noises, observations)
    variances = np.maximum((np.square(values @ axes) / spectra).mean(axis=1), _TINY)
    likelihoods = -0.5 * (len(values) * np.log(variances) + np.log(spectra).sum(axis=1))
    best = int(likelihoods.argmax())
    return float(likelihoods[best]), Scales(length, float(NOISES[best]), float(variances[best]))


def _matern(scaled: Floats) -> Floats:
    reach = np.sqrt(5.0) * scaled
    covariance: Floats = (1.0 + reach + np.square(reach) / 3.0) * np.exp(-reach)
    return covariance


Acquisition = Literal["ei", "ucb"]
BOUND = 2.0  # how many standard deviations the upper confidence bound lies above the mean


@dataclass(frozen=True)
class GpBo(SurrogateSearch):
    """Propose the design with the best acquisition under a Gaussian process, after `initial` random ones.

    Every listed design is scored by the expected improvement upon the best mean so far (`ei`), or the mean and two
    standard deviations (`ucb`). Pending trials count with their predicted scores. Designs whose cards are not
    Formwright's own have one-hot coordinates, whatever `coordinates` says.
    """

    coordinates: Coordinates = option("transformer2vec", "how designs are encoded")
    acquisition: Acquisition = option("ei", "expected improvement (ei), or mean and two standard deviations (ucb)")

    def _worth(self, seen: TrainingData, rng: Generator) -> tuple[Floats, Floats]:
        process = fit(seen.points, seen.scores).believe(seen.pending)
        mean, deviation = process.predict(seen.candidates.points)
        if self.acquisition == "ucb":
            return mean + BOUND * deviation, mean
        best = process.predict(process.points)[0].max()
        return expected_improvement(mean, deviation, float(best)), mean


LEAST_LEAF = 2  # trials that a leaf holds at least, so that no tree memorises single scores
SHARE = 0.5  # of the coordinates that a branch may choose from
LEAST_DEVIATION = 1e-3  # a floor for where all trees agree


@dataclass(frozen=True)
class Forest(SurrogateSearch):
    """Propose the design with the largest expected improvement under a random forest, after `initial` random ones.

    Every listed design is scored by the mean and the deviation of the predictions of the `trees`. Trees learn which
    choices matter and how they interact, so one-hot coordinates suit them.

    Differs from SMAC: every proposal follows the forest, where SMAC draws every second one at random. Pending trials
    count with their predicted scores. Proposals depend on the version of scikit-learn.
    """

    coordinates: Coordinates = option("one-hot", "how designs are encoded")
    trees: int = option(40, "trees of the forest", least=2)

    def _worth(self, seen: TrainingData, rng: Generator) -> tuple[Floats, Floats]:
        points, scores = seen.points, seen.scores
        if len(seen.pending):
            expected = grown(points, scores, seen.pending, self.trees, rng).mean(axis=0)
            points, scores = np.concatenate([points, seen.pending]), np.concatenate([scores, expected])
        found = grown(points, scores, seen.candidates.points, self.trees, rng)
        mean, deviation = found.mean(axis=0), np.maximum(found.std(axis=0), LEAST_DEVIATION)
        return expected_improvement(mean, deviation, float(seen.scores.max())), mean


def grown(points: Floats, scores: Floats, queries: NDArray[np.floating[Any]], trees: int, rng: Generator) -> Floats:
    """Grow a forest on scores, and return what each of its trees predicts for each query: (trees, queries)."""
    from sklearn.ensemble import RandomForestRegressor  # noqa: PLC0415  a second, and wanted by this searcher alone

    state = int(rng.integers(2**31))
    forest = RandomForestRegressor(trees, min_samples_leaf=LEAST_LEAF, max_features=SHARE, random_state=state, n_jobs=1)
    forest.fit(points, scores)
    asked = queries.astype(np.float32)  # what trees compare by
    return np.stack([tree.tree_.predict(asked)[:, 0] for tree in forest.estimators_])
