"""Small networks with exact derivatives, trained on all points at once: tanh networks, and natural-parameter networks.

Parameters are kept in one flat array in single precision, so that an optimiser's step is a few array operations. A
`Jet` carries first and second derivatives forward: one pass gives the exact gradient and the exact diagonal of the
Hessian.

In a natural-parameter network (Wang et al., 2016) weights, units and outputs are Gaussians, a mean and a variance each.
Every layer passes on the mean and the variance of what it computes, in closed form, so that the variance of the output
depends on the input. Units are rectified; the moments of a rectified Gaussian are smooth, hence so is the network.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import cos, log, pi, sqrt
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import ndtr

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


ROOT_TAU = sqrt(2 * pi)


@dataclass(frozen=True, eq=False)
class Gaussian:
    """Hold the means and variances of independent Gaussians, (points, units)."""

    mean: Floats
    variance: Floats


@dataclass(frozen=True, eq=False)
class NaturalLinear:
    """Hold the Gaussian weights (inputs, outputs) and biases (outputs,) of a layer; variances by their logarithms."""

    weight: Floats
    bias: Floats
    log_weight: Floats
    log_bias: Floats

    def __call__(self, x: Gaussian) -> Gaussian:
        """Return the moments of x W + b, where all factors are independent."""
        spread = np.exp(self.log_weight)
        variance = x.variance @ (self.weight**2 + spread) + x.mean**2 @ spread + np.exp(self.log_bias)
        return Gaussian(x.mean @ self.weight + self.bias, variance)

    def jet(self, mean: Jet, variance: Jet | None) -> tuple[Jet, Jet]:
        """Return the moments with their derivatives; without a variance the input is certain."""
        spread = np.exp(self.log_weight)
        noise = mean.square() @ spread
        if variance is not None:
            noise = noise + variance @ (self.weight**2 + spread)
        return (mean @ self.weight).shift(self.bias), noise.shift(np.exp(self.log_bias))

    def pull(self, x: Gaussian, slope: Gaussian) -> tuple[Gaussian, list[Floats]]:
        """Return the slopes of a loss with respect to input and parameters, given those with respect to the output."""
        spread = np.exp(self.log_weight)
        gradient = [
            x.mean.T @ slope.mean + 2 * self.weight * (x.variance.T @ slope.variance),
            slope.mean.sum(axis=0),
            spread * ((x.variance + x.mean**2).T @ slope.variance),
            np.exp(self.log_bias) * slope.variance.sum(axis=0),
        ]
        mean = slope.mean @ self.weight.T + 2 * x.mean * (slope.variance @ spread.T)
        return Gaussian(mean, slope.variance @ (self.weight**2 + spread).T), gradient


@dataclass(frozen=True, eq=False)
class Rectified:
    """Hold the moments of max(0, x) for Gaussians x, and what their derivatives are made of.

    `above` is the probability that x is positive and `density` that of x at 0.
    """

    moments: Gaussian
    above: Floats
    density: Floats

    @classmethod
    def of(cls, x: Gaussian) -> Rectified:
        deviation = np.sqrt(x.variance)
        above = ndtr(x.mean / deviation)
        density = np.exp(-0.5 * x.mean**2 / x.variance) / (ROOT_TAU * deviation)
        mean = x.mean * above + x.variance * density
        square = (x.mean**2 + x.variance) * above + x.mean * x.variance * density
        # rounding may give a small negative number
        return cls(Gaussian(mean, np.maximum(square - mean**2, 0)), above, density)

    def pull(self, slope: Gaussian) -> Gaussian:
        """Return the slopes of a loss with respect to the moments of x, given those with respect to these moments."""
        mean = self.moments.mean
        return Gaussian(
            slope.mean * self.above + 2 * slope.variance * mean * (1 - self.above),
            0.5 * slope.mean * self.density + slope.variance * (self.above - mean * self.density),
        )


def rectify(mean: Jet, variance: Jet) -> tuple[Jet, Jet]:
    """Return the moments of max(0, x) with their derivatives, given those of x."""
    m, v = mean.value, variance.value
    found = Rectified.of(Gaussian(m, v))
    top, above, density = found.moments.mean, found.above, found.density
    by_mean = -m / v * density  # derivatives of the density
    by_variance = 0.5 * ((m / v) ** 2 - 1 / v) * density
    return (
        bend(mean, variance, top, (above, 0.5 * density), (density, 0.5 * by_mean, 0.5 * by_variance)),
        bend(
            mean,
            variance,
            found.moments.variance,
            (2 * top * (1 - above), above - top * density),
            (
                2 * above * (1 - above) - 2 * top * density,
                density * (1 - above) - top * by_mean,
                0.5 * by_mean - 0.5 * density**2 - top * by_variance,
            ),
        ),
    )


def bend(x: Jet, y: Jet, value: Floats, first: tuple[Floats, Floats], second: tuple[Floats, Floats, Floats]) -> Jet:
    """Return a function of two jets, given its value and its derivatives by x and y, and by xx, xy and yy."""
    by_x, by_y = (part[:, None] for part in first)
    xx, xy, yy = (part[:, None] for part in second)
    curvature = by_x * x.curvature + by_y * y.curvature + xx * x.slope**2 + 2 * xy * x.slope * y.slope + yy * y.slope**2
    return Jet(value, by_x * x.slope + by_y * y.slope, curvature)


_FIELDS = 4  # arrays of a layer


@dataclass(frozen=True, eq=False)
class NaturalNetwork:
    """Hold the arrays of each `NaturalLinear`, one after the other; `floor` is the least variance of an output."""

    parameters: Parameters
    spread: float
    floor: float

    @classmethod
    def start(cls, widths: Sequence[int], spread: float, floor: float, rng: Generator) -> NaturalNetwork:
        """Draw the means of weights with variance 1 / inputs; their own variances are `spread` / inputs."""
        arrays: list[Floats] = []
        for inputs, outputs in pairwise(widths):
            weight = rng.standard_normal((inputs, outputs), dtype=np.float32) / sqrt(inputs)
            noise = np.full_like(weight, log(spread / inputs))
            arrays += [weight, np.zeros(outputs, np.float32), noise, np.full(outputs, log(spread), np.float32)]
        return cls(Parameters.of(arrays), spread, floor)

    @property
    def layers(self) -> list[NaturalLinear]:
        arrays = self.parameters.arrays
        return [NaturalLinear(*arrays[index : index + _FIELDS]) for index in range(0, len(arrays), _FIELDS)]

    def __call__(self, x: Floats) -> Gaussian:
        """Return mean and variance of an observation at each point, (points, 1)."""
        *hidden, last = self.layers
        moments = Gaussian(x, np.zeros_like(x))
        for layer in hidden:
            moments = Rectified.of(layer(moments)).moments
        output = last(moments)
        return Gaussian(output.mean, output.variance + self.floor)

    def jet(self, x: Jet) -> tuple[Jet, Jet]:
        *hidden, last = self.layers
        mean, variance = x, None
        for layer in hidden:
            mean, variance = rectify(*layer.jet(mean, variance))
        mean, variance = last.jet(mean, variance)
        return mean, variance.shift(self.floor)

    def fit(self, x: Floats, y: Floats, descent: Descent, prior: float) -> None:
        """Minimise (mean - y)^2 / (2 variance) + ln(variance) / 2 on average over x (points, inputs) and y (points,).

        Weights have a prior that counts `prior` times: means that of their initial distribution, variances their
        initial value. Without it, a network with more weights than points would fit them exactly, predict no noise, and
        be overconfident elsewhere.
        """
        layers = self.layers
        target = y[:, None]

        def gradient() -> list[Floats]:
            slopes = self._pull(layers, x, target)
            for index, layer in enumerate(layers):
                inputs = len(layer.weight)
                slopes[_FIELDS * index] += prior * inputs / len(x) * layer.weight
                excess = np.exp(layer.log_weight) * (inputs / self.spread) - 1
                slopes[_FIELDS * index + 2] += 0.5 * prior / len(x) * excess
            return slopes

        self.parameters.descend(gradient, descent)

    def _pull(self, layers: list[NaturalLinear], x: Floats, target: Floats) -> list[Floats]:
        inputs = [Gaussian(x, np.zeros_like(x))]
        units: list[Rectified] = []
        for layer in layers[:-1]:
            units.append(Rectified.of(layer(inputs[-1])))
            inputs.append(units[-1].moments)
        output = layers[-1](inputs[-1])
        variance, error = output.variance + self.floor, output.mean - target
        ratio = error / variance
        slope = Gaussian(ratio / len(x), (0.5 / len(x)) * (1 / variance - ratio**2))
        slopes: list[Floats] = []
        for index in reversed(range(len(layers))):
            slope, own = layers[index].pull(inputs[index], slope)
            slopes = [*own, *slopes]
            if index:
                slope = units[index - 1].pull(slope)
        return slopes
