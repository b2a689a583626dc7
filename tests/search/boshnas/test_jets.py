from collections.abc import Callable

import numpy as np
import pytest

from formwright.core.rng import derive
from formwright.search.boshnas.jets import Jet

X = derive(1).uniform(0.5, 2.0, size=(4, 3))
WEIGHT = derive(2).normal(size=(3, 2))


def check(jet: Callable[[Jet], Jet], plain: Callable[[np.ndarray], np.ndarray]) -> None:
    """Compare a jet with central differences of the same function."""
    step = 1e-4
    found = jet(Jet.at(X))
    np.testing.assert_allclose(found.value, plain(X), rtol=1e-12)
    for axis, move in enumerate(step * np.eye(X.shape[1])):
        above, here, below = plain(X + move), plain(X), plain(X - move)
        slope = np.broadcast_to(found.slope, (len(X), 3, here.shape[1]))[:, axis]
        curvature = np.broadcast_to(found.curvature, (len(X), 3, here.shape[1]))[:, axis]
        np.testing.assert_allclose(slope, (above - below) / (2 * step), atol=1e-6)
        np.testing.assert_allclose(curvature, (above + below - 2 * here) / step**2, atol=1e-5)


@pytest.mark.parametrize("name", ["square", "root", "exp", "tanh"])
def test_functions_of_one_quantity(name: str) -> None:
    functions = {"square": np.square, "root": np.sqrt, "exp": np.exp, "tanh": np.tanh}
    check(lambda x: getattr(x, name)(), functions[name])


def test_sums_and_products_with_constants() -> None:
    check(lambda x: (x @ WEIGHT).shift(np.array([1.0, -2.0])), lambda x: x @ WEIGHT + [1.0, -2.0])
    check(lambda x: x.square() + x.scale(-3.0), lambda x: x**2 - 3 * x)


def test_functions_of_functions() -> None:
    check(
        lambda x: ((x.tanh() @ WEIGHT).square().shift(0.1).root()).exp(),
        lambda x: np.exp(np.sqrt((np.tanh(x) @ WEIGHT) ** 2 + 0.1)),
    )
