"""Values with their first and second derivatives along each coordinate, carried forward through a network.

One pass gives the exact gradient and the exact diagonal of the Hessian, for many points at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from formwright.search.boshnas.parameters import Floats


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
        """Return the coordinates of points as quantities."""
        identity = np.eye(points.shape[1], dtype=np.float32)[None]
        return cls(points, identity, np.zeros_like(identity))

    def __add__(self, other: Jet) -> Jet:
        return Jet(self.value + other.value, self.slope + other.slope, self.curvature + other.curvature)

    def __matmul__(self, weight: Floats) -> Jet:
        return Jet(self.value @ weight, self.slope @ weight, self.curvature @ weight)

    def shift(self, constant: Floats | float) -> Jet:
        """Add a constant to the values."""
        return Jet(self.value + constant, self.slope, self.curvature)

    def scale(self, factor: float) -> Jet:
        """Multiply by a constant."""
        return Jet(factor * self.value, factor * self.slope, factor * self.curvature)

    def square(self) -> Jet:
        """Return the squares of the quantities."""
        return self.map(self.value**2, 2 * self.value, np.full_like(self.value, 2))

    def root(self) -> Jet:
        """Return the square roots of the quantities."""
        root = np.sqrt(self.value)
        return self.map(root, 0.5 / root, -0.25 / (root * self.value))

    def exp(self) -> Jet:
        """Return the exponentials of the quantities."""
        power = np.exp(self.value)
        return self.map(power, power, power)

    def tanh(self) -> Jet:
        """Return the hyperbolic tangents of the quantities."""
        bent = np.tanh(self.value)
        steep = 1 - bent**2
        return self.map(bent, steep, -2 * bent * steep)

    def map(self, value: Floats, first: Floats, second: Floats) -> Jet:
        """Return a function of the quantities, given its value and its derivatives with respect to them."""
        first, second = first[:, None], second[:, None]
        return Jet(value, first * self.slope, first * self.curvature + second * self.slope**2)
