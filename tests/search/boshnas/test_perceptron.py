import numpy as np
import pytest

from formwright.core.rng import derive
from formwright.search.boshnas.jets import Jet
from formwright.search.boshnas.parameters import Descent, Floats, Parameters
from formwright.search.boshnas.perceptron import Masks, Perceptron


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
