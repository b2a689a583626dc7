import numpy as np
import pytest

from formwright.search.ensemble import Layers, outputs, predict, slopes


def layers(rng: np.random.Generator) -> Layers:
    return [(rng.normal(size=(3, 4, 5)), rng.normal(size=(3, 1, 5))), (rng.normal(size=(3, 5, 1)), np.ones((3, 1, 1)))]


def test_slopes_are_those_of_the_error() -> None:
    rng = np.random.default_rng(0)
    net, points, values = layers(rng), rng.normal(size=(3, 6, 4)), rng.normal(size=(3, 6))

    def error() -> float:
        return float(np.square(outputs(net, points)[-1][..., 0] - values).mean(axis=1).sum())

    for part, slope in zip(
        [a for layer in net for a in layer], [a for layer in slopes(net, points, values) for a in layer], strict=True
    ):
        assert part.shape == slope.shape
        for place in list(np.ndindex(part.shape))[::3]:
            before = part[place]
            part[place] = before + 1e-6
            above = error()
            part[place] = before - 1e-6
            below = error()
            part[place] = before
            assert slope[place] == pytest.approx((above - below) / 2e-6, abs=1e-4)


def test_it_learns_and_is_unsure_elsewhere() -> None:
    rng = np.random.default_rng(0)
    points = rng.normal(size=(60, 3))
    values = points[:, 0] - 0.5 * np.abs(points[:, 1])
    values = (values - values.mean()) / values.std()
    queries = rng.normal(size=(30, 3))
    truth = queries[:, 0] - 0.5 * np.abs(queries[:, 1])
    found = predict(points, values, np.vstack([queries, 20 * queries]), 5, np.random.default_rng(1))
    assert found.shape == (5, 60)
    assert np.corrcoef(found[:, :30].mean(axis=0), truth)[0, 1] > 0.9
    deviation = found.std(axis=0)
    assert deviation[30:].mean() > 5 * deviation[:30].mean()
    assert all(len(set(column)) == 5 for column in found.T)  # no member is like another


def test_points_far_from_the_origin_and_constant_columns_are_no_trouble() -> None:
    points = np.column_stack([1e6 + np.arange(20.0), np.ones(20)])
    values = np.linspace(-1.5, 1.5, 20)
    found = predict(points, values, points, 3, np.random.default_rng(0))
    assert np.abs(found.mean(axis=0) - values).mean() < 0.5
    assert np.isfinite(predict(np.ones((4, 2)), np.zeros(4), np.ones((1, 2)), 3, np.random.default_rng(0))).all()
