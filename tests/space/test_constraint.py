import pytest

from formwright.space.constraint import estimate_share


def test_the_interval_is_wilsons() -> None:
    found = estimate_share(10**9, hits=30, samples=100)
    assert found.estimate == 300_000_000
    assert found.low < found.estimate < found.high
    for end in (found.low / 10**9, found.high / 10**9):
        # an end is the share from which the observed one is just 1.645 standard errors away
        assert abs(0.3 - end) / (end * (1 - end) / 100) ** 0.5 == pytest.approx(1.644854, abs=1e-5)


def test_no_hit_and_all_hits_keep_to_the_possible() -> None:
    for samples in range(1, 100):
        assert estimate_share(10**400, 0, samples).low == 0
        assert estimate_share(10**400, samples, samples).high == 10**400
    none, every = estimate_share(1_000, 0, 50), estimate_share(1_000, 50, 50)
    assert (none.estimate, none.low) == (0, 0)
    assert 0 < none.high < 100
    assert (every.estimate, every.high) == (1_000, 1_000)
    assert 900 < every.low < 1_000


def test_totals_beyond_floats_are_estimated() -> None:
    found = estimate_share(10**400, 1, 2)
    assert found.estimate == 5 * 10**399
    assert 10**399 < found.low < found.high < 9 * 10**399
