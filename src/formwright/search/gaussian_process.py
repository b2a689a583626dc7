"""A Gaussian process with a Matern 5/2 kernel, its scales chosen by marginal likelihood."""

from __future__ import annotations

from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve, cholesky, eigh, solve_triangular
from scipy.spatial.distance import cdist

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
        """Return this process as if it had seen what it expects at some more points."""
        if not len(points):
            return self
        values = np.concatenate([self.values, self.predict(points)[0]])
        return GaussianProcess(np.concatenate([self.points, points]), values, self.scales)


def fit(points: Floats, values: Floats) -> GaussianProcess:
    """Return the process under which the values are likeliest, over a grid of length scales and noises.

    One eigendecomposition serves all noises of a length scale, and the best variance is known in closed form, so the
    grid costs less than a gradient ascent, needs no restarts and has no local optimum to end in.
    """
    distances = cdist(points, points)
    apart = distances[distances > 0.0]
    unit = float(np.median(apart)) if len(apart) else 1.0
    found = [_likeliest(distances, values, unit * length) for length in LENGTHS.tolist()]
    return GaussianProcess(points, values, max(found, key=itemgetter(0))[1])


def _likeliest(distances: Floats, values: Floats, length: float) -> tuple[float, Scales]:
    """Return the best noise and variance for a length scale, behind their log-likelihood up to a constant."""
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
