"""Several small networks that predict the same values, trained at once as one computation."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

Floats = NDArray[np.float64]
# for each layer weights (members, inputs, outputs) and biases (members, 1, outputs)
Layers = list[tuple[Floats, Floats]]

HIDDEN = (32, 32)
STEPS, BATCH = 150, 32
LEARNING_RATE, DECAY = 0.01, 1e-3
_KEEP = (0.9, 0.99)  # of Adam's moments: so few steps have no time for the usual 0.999
_TINY = 1e-12


def predict(points: Floats, values: Floats, queries: Floats, members: int, rng: Generator) -> Floats:
    """Return what each member predicts at each query, (members, queries), after training on values at points.

    Members differ in their first weights and in the points that they see at each step.
    """
    centre = points.mean(axis=0)
    # one scale for all columns: a column that is rare among the points must not weigh more than the others
    scale = max(float((points - centre).std()), _TINY)
    layers = _train((points - centre) / scale, values, members, rng)
    asked: Floats = np.broadcast_to((queries - centre) / scale, (members, *queries.shape))
    return outputs(layers, asked)[-1][..., 0]


def outputs(layers: Layers, points: Floats) -> list[Floats]:
    """Return the points, (members, points, inputs), and what each layer makes of them."""
    found = [points]
    for index, (weights, biases) in enumerate(layers):
        output = found[-1] @ weights + biases
        found.append(output if index == len(layers) - 1 else np.maximum(output, 0.0))
    return found


def slopes(layers: Layers, points: Floats, values: Floats) -> Layers:
    """Return the gradient of each member's mean squared error by its weights and biases."""
    found = outputs(layers, points)
    back = (found[-1] - values[..., None]) * (2.0 / points.shape[1])
    gradient: Layers = []
    for (weights, _), entry in zip(reversed(layers), found[-2::-1], strict=True):
        gradient.append((entry.transpose(0, 2, 1) @ back, back.sum(axis=1, keepdims=True)))
        back = (back @ weights.transpose(0, 2, 1)) * (entry > 0)
    return gradient[::-1]


def _train(points: Floats, values: Floats, members: int, rng: Generator) -> Layers:
    layers, vector = _first_layers((points.shape[1], *HIDDEN, 1), members, rng)
    mean, square = np.zeros((2, len(vector)))
    for step in range(1, STEPS + 1):
        rows = rng.integers(len(points), size=(members, min(BATCH, len(points))))
        slope = _flat(slopes(layers, points[rows], values[rows])) + DECAY * vector
        mean += (1.0 - _KEEP[0]) * (slope - mean)
        square += (1.0 - _KEEP[1]) * (np.square(slope) - square)
        rate = LEARNING_RATE * (1.0 - step / (STEPS + 1)) / (1.0 - _KEEP[0] ** step)
        vector -= rate * mean / (np.sqrt(square / (1.0 - _KEEP[1] ** step)) + 1e-8)  # and with it the layers
    return layers


def _first_layers(sizes: tuple[int, ...], members: int, rng: Generator) -> tuple[Layers, Floats]:
    """Return random layers, and the one vector that all their weights and biases are parts of."""
    drawn = [
        (rng.normal(0.0, np.sqrt(2.0 / inputs), (members, inputs, width)), np.zeros((members, 1, width)))
        for inputs, width in pairwise(sizes)
    ]
    vector = _flat(drawn)
    shapes = [array.shape for layer in drawn for array in layer]
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes])[:-1]
    parts = [part.reshape(shape) for part, shape in zip(np.split(vector, ends), shapes, strict=True)]
    return list(zip(parts[::2], parts[1::2], strict=True)), vector


def _flat(layers: Layers) -> Floats:
    return np.concatenate([array.ravel() for layer in layers for array in layer])
