"""Small tanh networks with exact derivatives, trained on all points at once.

Parameters are kept in one flat array in single precision, so that an optimiser's step is a few array operations. A
`Jet` carries first and second derivatives forward: one pass gives the exact gradient and the exact diagonal of the
Hessian.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import cos, pi, sqrt
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

Floats = NDArray[np.floating[Any]]
FIRST_MOMENT, SECOND_MOMENT, EPSILON = 0.9, 0.99, 1e-8


@dataclass(frozen=True)
class Descent:
    """Number of steps and initial learning rate."""

    steps: int
    rate: float


@dataclass(frozen=True, eq=False)
class Parameters:
    """Hold arrays of parameters that share the memory of one flat array."""

    flat: Floats
    arrays: tuple[Floats, ...]

    @classmethod
    def of(cls, arrays: Sequence[Floats]) -> Parameters:
        flat = np.concatenate([array.ravel() for array in arrays])
        ends = np.cumsum([array.size for array in arrays])
        parts = zip(np.split(flat, ends[:-1]), arrays, strict=True)
        return cls(flat, tuple(part.reshape(array.shape) for part, array in parts))

    def descend(self, gradient: Callable[[], Sequence[Floats]], descent: Descent) -> None:
        """Minimise in place by Adam, at a rate that falls to 0 along a half cosine.

        `gradient` gives the slope of the loss with respect to each array, as the arrays are at the time.
        """
        flat = self.flat
        first, second, slope = (np.zeros_like(flat) for _ in range(3))
        for step in range(descent.steps):
            np.concatenate([part.ravel() for part in gradient()], out=slope)
            first += (1 - FIRST_MOMENT) * (slope - first)
            second += (1 - SECOND_MOMENT) * (slope * slope - second)
            rate = 0.5 * descent.rate * (1 + cos(pi * step / descent.steps))
            unbiased = sqrt(1 - SECOND_MOMENT ** (step + 1)) / (1 - FIRST_MOMENT ** (step + 1))
            flat -= rate * unbiased * first / (np.sqrt(second) + EPSILON)


@dataclass(frozen=True, eq=False)
class Jet:
    """Hold quantities of each point and their first and second derivative along each coordinate of the point.

    Derivatives that are the same for all points may be held once, with a leading length of 1.
    """

    value: Floats  # (points, quantities)
    slope: Floats  # (points, coordinates, quantities)
    curvature: Floats  # (points, coordinates, quantities)

    @classmethod
    def at(cls, points: Floats) -> Jet:
        identity = np.eye(points.shape[1], dtype=np.float32)[None]
        return cls(points, identity, np.zeros_like(identity))

    def __add__(self, other: Jet) -> Jet:
        return Jet(self.value + other.value, self.slope + other.slope, self.curvature + other.curvature)

    def __matmul__(self, weight: Floats) -> Jet:
        return Jet(self.value @ weight, self.slope @ weight, self.curvature @ weight)

    def shift(self, constant: Floats | float) -> Jet:
        return Jet(self.value + constant, self.slope, self.curvature)

    def scale(self, factor: float) -> Jet:
        return Jet(factor * self.value, factor * self.slope, factor * self.curvature)

    def square(self) -> Jet:
        return self.map(self.value**2, 2 * self.value, np.full_like(self.value, 2))

    def root(self) -> Jet:
        root = np.sqrt(self.value)
        return self.map(root, 0.5 / root, -0.25 / (root * self.value))

    def exp(self) -> Jet:
        power = np.exp(self.value)
        return self.map(power, power, power)

    def tanh(self) -> Jet:
        bent = np.tanh(self.value)
        steep = 1 - bent**2
        return self.map(bent, steep, -2 * bent * steep)

    def map(self, value: Floats, first: Floats, second: Floats) -> Jet:
        """Return a function of the quantities, given its value and its derivatives with respect to them."""
        first, second = first[:, None], second[:, None]
        return Jet(value, first * self.slope, first * self.curvature + second * self.slope**2)


Masks = Sequence[Floats]


@dataclass(frozen=True, eq=False)
class Perceptron:
    """Hold the weight (inputs, outputs) and the bias (outputs,) of each layer, one array after the other."""

    parameters: Parameters

    @classmethod
    def start(cls, widths: Sequence[int], rng: Generator) -> Perceptron:
        """Draw a network whose units have values of about unit size where its inputs have."""
        arrays: list[Floats] = []
        for inputs, outputs in pairwise(widths):
            weight = rng.standard_normal((inputs, outputs), dtype=np.float32) / sqrt(inputs)
            arrays += [weight, np.zeros(outputs, dtype=np.float32)]
        return cls(Parameters.of(arrays))

    @property
    def weights(self) -> tuple[Floats, ...]:
        return self.parameters.arrays[::2]

    @property
    def biases(self) -> tuple[Floats, ...]:
        return self.parameters.arrays[1::2]

    def __call__(self, x: Floats, masks: Masks | None = None) -> Floats:
        """Return the outputs (..., points, 1); masks (..., 1, units) make as many thinned networks of this one."""
        return self._values(x, masks)[-1]

    def jet(self, x: Jet) -> Jet:
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            x = (x @ weight).shift(bias).tanh()
        return (x @ self.weights[-1]).shift(self.biases[-1])

    def fit(
        self,
        x: Floats,
        slope_of: Callable[[Floats], Floats],
        descent: Descent,
        prior: float,
        draw_masks: Callable[[], Masks] | None = None,
    ) -> None:
        """Minimise a loss over all points; `slope_of` gives its slope with respect to the outputs.

        Weights have the prior they were drawn from, which counts `prior` times.
        """
        share = [prior / len(x) * len(weight) for weight in self.weights]

        def gradient() -> list[Floats]:
            slopes = self._pull(x, slope_of, draw_masks() if draw_masks else None)
            for index, weight in enumerate(self.weights):
                slopes[2 * index] += share[index] * weight
            return slopes

        self.parameters.descend(gradient, descent)

    def _values(self, x: Floats, masks: Masks | None) -> list[Floats]:
        """Return the values of the units of each layer, before any are dropped, and the output."""
        values: list[Floats] = []
        for index, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            x = x @ weight + bias
            if index < len(self.weights) - 1:
                x = np.tanh(x)
            values.append(x)
            if masks is not None and index < len(masks):
                x = x * masks[index]
        return values

    def _pull(self, x: Floats, slope_of: Callable[[Floats], Floats], masks: Masks | None) -> list[Floats]:
        *hidden, output = self._values(x, masks)
        slope = slope_of(output)
        slopes: list[Floats] = []
        for index in reversed(range(len(self.weights))):
            values = hidden[index - 1] if index else x
            kept = values if masks is None or not index else values * masks[index - 1]
            slopes = [kept.T @ slope, slope.sum(axis=0), *slopes]
            if index:
                slope = (slope @ self.weights[index].T) * (1 - values**2)
                slope = slope if masks is None else slope * masks[index - 1]
        return slopes
