"""Expected improvement (Mockus, 1975): what a design promises beyond the best so far."""

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

Floats = NDArray[np.float64]


def expected_improvement(mean: Floats, deviation: Floats, best: float) -> Floats:
    """Return by how much a normal variable exceeds `best` on average, counting 0 where it does not."""
    standard = (mean - best) / deviation
    density = np.exp(-0.5 * np.square(standard)) / np.sqrt(2.0 * np.pi)
    improvement: Floats = deviation * (standard * ndtr(standard) + density)
    return improvement
