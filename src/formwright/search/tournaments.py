"""Tournaments without ageing, and the hurdles of Progressive Dynamic Hurdles (So et al., 2019), on arrays of fitness.

Fitness is a number of which larger is better. Populations stand in the last axis, so that the same rules serve one
search and hundreds side by side.
"""

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]


def draw(rng: Generator, rows: int, population: int, size: int) -> Indices:
    """Draw `size` different members of each of `rows` populations, in random order, (rows, size).

    Populations that are not larger than that are drawn whole.
    """
    keys = rng.random((rows, population))
    if size < population:
        drawn: Indices = np.argpartition(keys, size - 1, axis=1)[:, :size]
    else:
        drawn = np.broadcast_to(np.arange(population), keys.shape)
    # in the order of their keys: otherwise who stands first among equals would depend on the place in the population
    return np.take_along_axis(drawn, np.argsort(np.take_along_axis(keys, drawn, axis=1), axis=1), axis=1)


def winners(fitness: Floats) -> Indices:
    """Return which entrant of each tournament is the fittest: it becomes a parent. Of equals it is the first drawn."""
    best: Indices = np.argmax(fitness, axis=-1)
    return best


def losers(fitness: Floats) -> Indices:
    """Return which entrant of each tournament is the least fit: a child takes its place."""
    worst: Indices = np.argmin(fitness, axis=-1)
    return worst


def height(fitness: Floats) -> Floats:
    """Return the hurdle that populations set: their mean fitness."""
    # rounding lifts no member above the mean of equal ones
    mean: Floats = np.clip(fitness.mean(axis=-1), fitness.min(axis=-1), fitness.max(axis=-1))
    return mean


def clears(fitness: Floats, hurdle: Floats | float) -> NDArray[np.bool_]:
    """Tell who earns further steps: whoever is strictly above the hurdle; one of 0 is a hurdle like any other."""
    above: NDArray[np.bool_] = np.greater(fitness, hurdle)
    return above
