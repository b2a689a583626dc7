from collections.abc import Callable

import numpy as np
import pytest

from formwright.core.rng import derive
from formwright.search.boshnas.networks import Descent, Floats, Jet, Masks, Parameters, Perceptron


def points(number: int, seed: int = 20) -> Floats:
    return derive(seed).normal(size=(number, 4)).astype(np.float32)


def masks(*leading: int) -> Masks:
    rng = derive(21)
    return [2 * (rng.random((*leading, width)) < 0.5).astype(np.float32) for width in (3, 2)]


@pytest.mark.parametrize("dropped", [False, True])
def test_the_slopes_of_a_loss_are_those_of_differences(dropped: bool) -> None:
    x, y, step = points(6).astype(np.float64), derive(22).normal(size=(6, 1)), 1e-6
    start = Perceptron.start((4, 3, 2, 1), derive(23))
    network = Perceptron(Parameters.of([array.astype(np.float64) for array in start.parameters.arrays]))
    kept = masks(6) if dropped else None
    slopes = np.concatenate([part.ravel() for part in network._pull(x, lambda output: output - y, kept)])
    flat = network.parameters.flat
    for index in range(len(flat)):
        losses = []
        for move in (step, -step):
            flat[index] += move
            losses.append(0.5 * np.sum((network(x, kept) - y) ** 2))
            flat[index] -= move
        assert slopes[index] == pytest.approx((losses[0] - losses[1]) / (2 * step), abs=1e-6)


def test_masks_with_a_leading_axis_give_that_many_networks() -> None:
    network, x, many = Perceptron.start((4, 3, 2, 1), derive(24)), points(5), masks(7, 1)
    outputs = network(x, many)
    assert outputs.shape == (7, 5, 1)
    for sample in range(7):
        np.testing.assert_allclose(outputs[sample], network(x, [mask[sample] for mask in many]), rtol=1e-5, atol=1e-6)
    assert not np.allclose(outputs[0], outputs[1])


def test_jets_agree_with_the_network() -> None:
    network, x, step = Perceptron.start((4, 8, 8, 1), derive(25)), points(5), np.float32(1e-2)
    jet = network.jet(Jet.at(x))
    np.testing.assert_allclose(jet.value, network(x), rtol=1e-5)
    move = step * np.eye(4, dtype=np.float32)[1]
    np.testing.assert_allclose(jet.slope[:, 1], (network(x + move) - network(x - move)) / (2 * step), atol=1e-3)


def test_it_learns_a_curved_function() -> None:
    x, fresh = points(200), points(200, seed=26)
    network = Perceptron.start((4, 32, 1), derive(27))
    y = (x[:, :1] * x[:, 1:2]).astype(np.float32)
    network.fit(x, lambda output: (output - y) / len(x), Descent(200, 0.02), prior=0.01)
    assert np.corrcoef(network(fresh)[:, 0], fresh[:, 0] * fresh[:, 1])[0, 1] > 0.9
    assert network(fresh).dtype == np.float32


def test_a_stronger_prior_keeps_weights_smaller() -> None:
    x = points(20)
    norms = []
    for prior in (0.0, 0.3, 3.0):
        network = Perceptron.start((4, 16, 1), derive(28))
        network.fit(x, lambda output: (output - x[:, :1] ** 2) / len(x), Descent(100, 0.02), prior)
        norms.append(sum(float(np.sum(weight**2)) for weight in network.weights))
    assert norms[0] > norms[1] > norms[2]


def two() -> list[Floats]:
    return [np.arange(6, dtype=np.float32).reshape(2, 3), np.array([7.0], dtype=np.float32)]


def test_arrays_are_copied_and_share_the_memory_of_the_flat_array() -> None:
    parameters = Parameters.of(two())
    assert [array.tolist() for array in parameters.arrays] == [array.tolist() for array in two()]
    parameters.flat[:] = 1
    assert all((array == 1).all() for array in parameters.arrays)
    given = two()
    Parameters.of(given).flat[:] = 0
    assert given[0][1, 2] == 5


def test_descent_finds_the_minimum_of_a_bowl_in_single_precision() -> None:
    parameters = Parameters.of(two())
    target = [np.full((2, 3), 2.0, np.float32), np.full(1, -1.0, np.float32)]
    steepness = (1.0, 100.0)  # Adam does not mind
    parameters.descend(
        lambda: [
            steep * (array - goal) for steep, array, goal in zip(steepness, parameters.arrays, target, strict=True)
        ],
        Descent(steps=400, rate=0.1),
    )
    for array, goal in zip(parameters.arrays, target, strict=True):
        np.testing.assert_allclose(array, goal, atol=0.02)
    assert parameters.flat.dtype == np.float32


def test_no_step_is_longer_than_the_rate() -> None:
    parameters = Parameters.of([np.zeros(3, np.float32)])
    parameters.descend(lambda: [np.array([1e6, -1e-3, 0.0], np.float32)], Descent(steps=1, rate=0.25))
    np.testing.assert_allclose(parameters.flat, [-0.25, 0.25, 0.0], rtol=1e-3)


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


def test_jets_of_sums_products_and_functions() -> None:
    check(lambda x: (x @ WEIGHT).shift(np.array([1.0, -2.0])), lambda x: x @ WEIGHT + [1.0, -2.0])
    check(lambda x: x.square() + x.scale(-3.0), lambda x: x**2 - 3 * x)
    check(
        lambda x: ((x.tanh() @ WEIGHT).square().shift(0.1).root()).exp(),
        lambda x: np.exp(np.sqrt((np.tanh(x) @ WEIGHT) ** 2 + 0.1)),
    )
