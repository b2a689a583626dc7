"""What scores are worth: one that stands out from those of similar designs is partly luck."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from formwright.core.records import Trial
from formwright.search.gaussian_process import LENGTHS, fit
from formwright.space import Gene, Space

Floats = NDArray[np.float64]

FEWEST = 20  # values from which noise can be told
# a kernel that is shorter than designs are apart would take all noise for the designs' own
SMOOTH = LENGTHS[LENGTHS >= 1.0]


def believed(space: Space, trials: Sequence[Trial], values: Floats) -> Floats:
    """Give what is to be believed of each trial's value, in the light of the values of designs like it.

    That is the mean of a Gaussian process over the numbers that the designs choose, with noise as large as the values
    say. Where similar designs have similar values, these are believed as they are; where they do not, the best of many
    is no longer taken for the best design only because it was lucky. So are fewer than `FEWEST` values, and those of
    designs that choose something else than numbers.
    """
    genes = [space.genes(trial.request.design) for trial in trials if trial.request.design is not None]
    if len(trials) < FEWEST or len(genes) < len(trials) or not _are_numbers(genes):
        return values
    points, mean = np.array([[_scaled(gene) for gene in own] for own in genes]), values.mean()
    believed: Floats = mean + fit(points, values - mean, SMOOTH).predict(points)[0]
    return believed


def _are_numbers(genes: Sequence[Sequence[Gene]]) -> bool:
    """Tell whether all designs have the same genes, and each of these holds a number."""
    alike = len({tuple(gene.path for gene in own) for own in genes}) == 1
    return alike and all(type(option) in (int, float) for gene in genes[0] for option in gene.options)


def _scaled(gene: Gene) -> float:
    """Give the number that a gene holds, from 0 for the least that it may hold to 1 for the most."""
    low, high = min(gene.options), max(gene.options)
    return float(gene.value - low) / (high - low) if high > low else 0.0
