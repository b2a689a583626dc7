import numpy as np

from formwright.search.boshnas.parameters import Descent, Floats, Parameters


def two() -> list[Floats]:
    return [np.arange(6, dtype=np.float32).reshape(2, 3), np.array([7.0], dtype=np.float32)]


def test_arrays_share_the_memory_of_the_flat_array() -> None:
    parameters = Parameters.of(two())
    assert [array.tolist() for array in parameters.arrays] == [array.tolist() for array in two()]
    parameters.flat[:] = 1
    assert all((array == 1).all() for array in parameters.arrays)


def test_the_arrays_given_are_copied() -> None:
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
