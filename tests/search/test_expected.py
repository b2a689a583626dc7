import numpy as np
from scipy.stats import norm

from formwright.search.expected import expected_improvement


def test_the_improvement_expected_is_the_mean_of_draws() -> None:
    mean, deviation = np.array([0.0, 1.0, -2.0]), np.array([1.0, 0.5, 2.0])
    quantiles = norm.ppf((np.arange(200_000) + 0.5) / 200_000)
    drawn = np.maximum(mean[:, None] + deviation[:, None] * quantiles - 0.3, 0.0).mean(axis=1)
    np.testing.assert_allclose(expected_improvement(mean, deviation, 0.3), drawn, atol=1e-4)
