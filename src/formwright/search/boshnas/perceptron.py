"""Small networks of tanh units, trained on all points at once; units may be dropped at random."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import sqrt

import numpy as np
from numpy.random import Generator

from formwright.search.boshnas.jets import Jet
from formwright.search.boshnas.parameters import Descent, Floats, Parameters

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
        """List the weight of each layer."""
        return self.parameters.arrays[::2]

    @property
    def biases(self) -> tuple[Floats, ...]:
        """List the bias of each layer."""
        return self.parameters.arrays[1::2]

    def __call__(self, x: Floats, masks: Masks | None = None) -> Floats:
        """Return the outputs (..., points, 1); masks (..., 1, units) make as many thinned networks of this one."""
        return self._values(x, masks)[-1]

    def jet(self, x: Jet) -> Jet:
        """Return the output with its derivatives."""
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
