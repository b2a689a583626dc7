import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formwright.core.rng import derive
from formwright.search.boshnas.natural_network import Gaussian, NaturalLinear, NaturalNetwork, Rectified, rectify
from formwright.search.boshnas.networks import Descent, Floats, Jet, Parameters

SPREAD, FLOOR = 0.15, 0.0025


def points(number: int, seed: int = 7) -> Floats:
    return derive(seed).normal(size=(number, 4)).astype(np.float32)


def negative_likelihood(found: Gaussian, y: Floats) -> float:
    mean, variance = found.mean[:, 0], found.variance[:, 0]
    return float(np.mean((mean - y) ** 2 / (2 * variance) + np.log(variance) / 2))


def test_the_slopes_of_the_loss_are_those_of_differences() -> None:
    x, y, step = points(6).astype(np.float64), derive(8).normal(size=6), 1e-6
    arrays = [
        array.astype(np.float64)
        for array in NaturalNetwork.start((4, 3, 2, 1), SPREAD, FLOOR, derive(9)).parameters.arrays
    ]
    network = NaturalNetwork(Parameters.of(arrays), SPREAD, FLOOR)
    slopes = np.concatenate([part.ravel() for part in network._pull(network.layers, x, y[:, None])])
    flat = network.parameters.flat
    for index in range(len(flat)):
        losses = []
        for move in (step, -step):
            flat[index] += move
            losses.append(negative_likelihood(network(x), y))
            flat[index] -= move
        assert slopes[index] == pytest.approx((losses[0] - losses[1]) / (2 * step), abs=1e-6)


def test_jets_agree_with_the_network() -> None:
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
