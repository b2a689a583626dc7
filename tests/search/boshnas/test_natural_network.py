import numpy as np
import pytest

from formwright.core.rng import derive
from formwright.search.boshnas.jets import Jet
from formwright.search.boshnas.natural_network import NaturalNetwork
from formwright.search.boshnas.natural_parameters import Gaussian
from formwright.search.boshnas.parameters import Descent, Floats, Parameters

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
