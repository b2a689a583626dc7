"""Several small networks that predict the same values, trained at once as one computation."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Layers = list[tuple[Floats, Floats]]  # weights (members, inputs, outputs) and biases (members, 1, outputs)

LEARNING_RATE = 0.01
STEPS = 150
BATCH = 32
DECAY = 1e-3


def predict(points: Floats, values: Floats, queries: Floats, members: int, hidden: tuple[int, ...], rng: Generator) -> Floats:
    """Return what each member predicts at each query, (members, queries), after training on values at points.

    Members differ in their first weights and in the order they see the points in.
    """
    centre = points.mean(axis=0)
    scale = max(float((points - centre).std()), 1e-12)
    layers = _train((points - centre) / scale, values, members, hidden, rng)
    queries = np.broadcast_to((queries - centre) / scale, (members, *queries.shape))
    return _outputs(layers, queries)[-1][..., 0]


def _train(points: Floats, values: Floats, members: int, hidden: tuple[int, ...], rng: Generator) -> Layers:
    sizes = (points.shape[1], *hidden, 1)
    shapes = [shape for pair in zip(sizes[:-1], sizes[1:], strict=True) for shape in ((members, *pair), (members, 1, pair[1]))]
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes])
    vector, slope = np.zeros((2, ends[-1]))
    arrays, slopes = ([part.reshape(shape) for part, shape in zip(np.split(flat, ends[:-1]), shapes, strict=True)] for flat in (vector, slope))
    for array in arrays[::2]:
        array[:] = rng.normal(0.0, np.sqrt(2.0 / array.shape[1]), array.shape)
    batch = min(BATCH, len(points))
    first, second = np.zeros((2, len(vector)))
    for step in range(1, STEPS + 1):
        rows = rng.integers(len(points), size=(members, batch))
        _slopes(arrays, slopes, points[rows], values[rows])
        slope += DECAY * vector
        first += 0.1 * (slope - first)
        second += 0.01 * (slope*slope - second)
        rate = LEARNING_RATE * (1 - step / (STEPS + 1))
        vector -= rate * (first / (1 - 0.9**step)) / (np.sqrt(second / (1 - 0.99**step)) + 1e-8)
    return list(zip(arrays[::2], arrays[1::2], strict=True))


def _slopes(arrays, slopes, points, values):
    layers = list(zip(arrays[::2], arrays[1::2], strict=True))
    outputs = _outputs(layers, points)
    back = (outputs[-1] - values[..., None]) * (2.0 / points.shape[1])
    for index in range(len(layers) - 1, -1, -1):
        np.matmul(outputs[index].transpose(0, 2, 1), back, out=slopes[2 * index])
        np.sum(back, axis=1, keepdims=True, out=slopes[2 * index + 1])
        if index:
            back = back @ layers[index][0].transpose(0, 2, 1)
            back *= outputs[index] > 0


def _outputs(layers, points):
    outputs = [points]
    for index, (weights, biases) in enumerate(layers):
        out = outputs[-1] @ weights
        out += biases
        if index < len(layers) - 1:
            np.maximum(out, 0.0, out=out)
        outputs.append(out)
    return outputs
