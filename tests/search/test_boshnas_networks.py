from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formwright.core.rng import derive
from formwright.search.boshnas_networks import (
    Descent,
    Floats,
    Gaussian,
    Jet,
    Masks,
    NaturalLinear,
    NaturalNetwork,
    Parameters,
    Perceptron,
    Rectified,
    rectify,
)


def points(number: int, seed: int = 20) -> Floats:
    return derive(seed).normal(size=(number, 4)).astype(np.float32)


def masks(*leading: int) -> Masks:
    rng = derive(21)
    return [2 * (rng.random((*leading, width)) < 0.5).astype(np.float32) for width in (3, 2)]


def check_slopes(slopes: list[Floats], flat: Floats, loss: Callable[[], float], step: float = 1e-6) -> None:
    """Compare the slopes by all parameters, which `flat` holds, with differences of the loss."""
    for index, slope in enumerate(np.concatenate([part.ravel() for part in slopes])):
        losses = []
        for move in (step, -step):
            flat[index] += move
            losses.append(loss())
            flat[index] -= move
        assert slope == pytest.approx((losses[0] - losses[1]) / (2 * step), abs=1e-6)


@pytest.mark.parametrize("dropped", [False, True])
def test_the_slopes_of_a_loss_are_those_of_differences(dropped: bool) -> None:
    x, y = points(6).astype(np.float64), derive(22).normal(size=(6, 1))
    start = Perceptron.start((4, 3, 2, 1), derive(23))
    network = Perceptron(Parameters.of([array.astype(np.float64) for array in start.parameters.arrays]))
    kept = masks(6) if dropped else None
    slopes = network._pull(x, lambda output: output - y, kept)
    check_slopes(slopes, network.parameters.flat, lambda: 0.5 * np.sum((network(x, kept) - y) ** 2))


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


SPREAD, FLOOR = 0.15, 0.0025


def negative_likelihood(found: Gaussian, y: Floats) -> float:
    mean, variance = found.mean[:, 0], found.variance[:, 0]
    return float(np.mean((mean - y) ** 2 / (2 * variance) + np.log(variance) / 2))


def test_the_slopes_of_the_loss_are_those_of_differences() -> None:
    x, y = points(6).astype(np.float64), derive(8).normal(size=6)
    arrays = [
        array.astype(np.float64)
        for array in NaturalNetwork.start((4, 3, 2, 1), SPREAD, FLOOR, derive(9)).parameters.arrays
    ]
    network = NaturalNetwork(Parameters.of(arrays), SPREAD, FLOOR)
    slopes = network._pull(network.layers, x, y[:, None])
    check_slopes(slopes, network.parameters.flat, lambda: negative_likelihood(network(x), y))


def test_jets_agree_with_a_natural_network() -> None:
    network, x = NaturalNetwork.start((4, 8, 1), SPREAD, FLOOR, derive(10)), points(5)
    mean, variance = network.jet(Jet.at(x))
    found = network(x)
    np.testing.assert_allclose(mean.value, found.mean, rtol=1e-5)
    np.testing.assert_allclose(variance.value, found.variance, rtol=1e-5)
    step = np.float32(1e-2) * np.eye(4, dtype=np.float32)[2]
    np.testing.assert_allclose(mean.slope[:, 2], (network(x + step).mean - network(x - step).mean) / 2e-2, atol=1e-3)


def test_it_learns_where_the_noise_is() -> None:
    rng, x = derive(11), points(300)
    sigma = np.where(x[:, 0] > 0, 0.8, 0.1)
    y = (np.tanh(x[:, 1]) + sigma * rng.normal(size=len(x))).astype(np.float32)
    network = NaturalNetwork.start((4, 16, 1), SPREAD, FLOOR, rng)
    network.fit(x, y, Descent(300, 0.02), prior=1.0)
    fresh = points(400, seed=12)
    found = network(fresh)
    deviation = np.sqrt(found.variance[:, 0])
    assert deviation[fresh[:, 0] > 0.5].mean() > 2 * deviation[fresh[:, 0] < -0.5].mean()
    assert np.corrcoef(found.mean[:, 0], np.tanh(fresh[:, 1]))[0, 1] > 0.9


def test_no_variance_is_below_the_floor() -> None:
    x = points(20)
    network = NaturalNetwork.start((4, 16, 1), SPREAD, FLOOR, derive(13))
    network.fit(x, np.zeros(20, np.float32), Descent(400, 0.1), prior=0.0)
    assert FLOOR <= network(x).variance.min() < 1.1 * FLOOR  # what it learnt by itself is next to nothing
    assert network(x).mean.dtype == np.float32


def test_a_stronger_prior_keeps_the_means_of_weights_smaller() -> None:
    x = points(20)
    y = x[:, 0] * x[:, 1]
    norms = []
    for prior in (0.0, 1.0, 10.0):
        network = NaturalNetwork.start((4, 16, 1), SPREAD, FLOOR, derive(14))
        network.fit(x, y, Descent(100, 0.02), prior)
        norms.append(sum(float(np.sum(layer.weight**2)) for layer in network.layers))
    assert norms[0] > norms[1] > norms[2]


SAMPLES = 200_000


def one(mean: float, variance: float) -> Gaussian:
    return Gaussian(np.array([[mean]]), np.array([[variance]]))


def layer() -> NaturalLinear:
    rng = derive(3)
    return NaturalLinear(
        rng.normal(size=(3, 2)), rng.normal(size=2), rng.normal(-2.0, 0.5, size=(3, 2)), rng.normal(-2.0, 0.5, size=2)
    )


def test_a_layer_has_the_moments_of_samples() -> None:
    rng, given_layer = derive(4), layer()
    x = Gaussian(rng.normal(size=(1, 3)), rng.uniform(0.1, 1.0, size=(1, 3)))
    drawn = x.mean + np.sqrt(x.variance) * rng.normal(size=(SAMPLES, 3))
    weight = given_layer.weight + np.exp(given_layer.log_weight / 2) * rng.normal(size=(SAMPLES, 3, 2))
    bias = given_layer.bias + np.exp(given_layer.log_bias / 2) * rng.normal(size=(SAMPLES, 2))
    outputs = np.einsum("si,sio->so", drawn, weight) + bias
    found = given_layer(x)
    np.testing.assert_allclose(found.mean[0], outputs.mean(axis=0), atol=0.02)
    np.testing.assert_allclose(found.variance[0], outputs.var(axis=0), rtol=0.02)


@pytest.mark.parametrize(("mean", "variance"), [(0.0, 1.0), (1.5, 0.5), (-1.0, 2.0), (-0.1, 0.01)])
def test_rectified_moments_are_those_of_samples(mean: float, variance: float) -> None:
    drawn = np.maximum(0, derive(5).normal(mean, variance**0.5, size=SAMPLES))
    found = Rectified.of(one(mean, variance)).moments
    assert found.mean[0, 0] == pytest.approx(drawn.mean(), abs=0.01)
    assert found.variance[0, 0] == pytest.approx(drawn.var(), rel=0.03)


@given(st.floats(-30, 30), st.floats(1e-4, 10))
def test_a_rectified_variance_is_never_negative_and_never_grows(mean: float, variance: float) -> None:
    found = Rectified.of(one(mean, variance)).moments
    assert 0 <= found.variance[0, 0] <= variance * (1 + 1e-6)
    assert found.mean[0, 0] >= max(0.0, mean) - 1e-9


@given(st.floats(-2, 2), st.floats(0.1, 2), st.floats(-1, 1), st.floats(-1, 1))
def test_slopes_through_a_unit_are_those_of_differences(m: float, v: float, by_mean: float, by_variance: float) -> None:
    def loss(mean: float, variance: float) -> float:
        found = Rectified.of(one(mean, variance)).moments
        return float(by_mean * found.mean[0, 0] + by_variance * found.variance[0, 0])

    slope = Rectified.of(one(m, v)).pull(one(by_mean, by_variance))
    step = 1e-5
    assert slope.mean[0, 0] == pytest.approx((loss(m + step, v) - loss(m - step, v)) / (2 * step), abs=1e-6)
    assert slope.variance[0, 0] == pytest.approx((loss(m, v + step) - loss(m, v - step)) / (2 * step), abs=1e-6)


def test_jets_through_layers_and_units_are_those_of_differences() -> None:
    given_layer, x, step = layer(), derive(6).normal(size=(5, 3)), 1e-4

    def moments(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        found = Rectified.of(given_layer(Gaussian(x, x**2))).moments
        return found.mean, found.variance

    point = Jet.at(x)
    for index, jet in enumerate(rectify(*given_layer.jet(point, point.square()))):
        here = moments(x)[index]
        np.testing.assert_allclose(jet.value, here, rtol=1e-12)
        for axis, move in enumerate(step * np.eye(3)):
            above, below = moments(x + move)[index], moments(x - move)[index]
            np.testing.assert_allclose(jet.slope[:, axis], (above - below) / (2 * step), atol=1e-6)
            np.testing.assert_allclose(jet.curvature[:, axis], (above + below - 2 * here) / step**2, atol=1e-5)
