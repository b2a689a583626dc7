"""A natural-parameter network that predicts the mean and the noise of observations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import log, sqrt

import numpy as np
from numpy.random import Generator

from formwright.search.boshnas.jets import Jet
from formwright.search.boshnas.natural_parameters import Gaussian, NaturalLinear, Rectified, rectify
from formwright.search.boshnas.parameters import Descent, Floats, Parameters

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
        """List the layers; they share the memory of the parameters."""
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
        """Return mean and variance with their derivatives."""
        *hidden, last = self.layers
        mean, variance = x, None
        for layer in hidden:
            mean, variance = rectify(*layer.jet(mean, variance))
        mean, variance = last.jet(mean, variance)
        return mean, variance.shift(self.floor)

    def fit(self, x: Floats, y: Floats, descent: Descent, prior: float) -> None:
        """Minimise (mean - y)^2 / (2 variance) + ln(variance) / 2 on average over x (points, inputs) and y (points,).

        Weights have a prior that counts `prior` times: the means that of which they were drawn, the variances the value
        they began with. A network with more weights than there are points could explain all of them without it, would
        leave no noise, and be sure of itself where it has seen nothing.
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
