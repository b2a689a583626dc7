from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from formwright.core.rng import derive
from formwright.cost import params


@pytest.fixture
def shared(script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.setattr(script, "RESAMPLES", 200)
    return script


def test_designs_differ_and_controls_have_the_size_of_the_winner(shared: ModuleType) -> None:
    cards = shared.drawn(10)
    assert len({card.digest for card in cards}) == 10
    assert cards == shared.drawn(10)
    for other in shared.like(cards[0], 3, seed=1):
        assert other != cards[0]
        assert abs(params(other) / params(cards[0]) - 1) <= 0.1


def rows(shared: ModuleType, order: int) -> dict[str, dict]:
    """Make up results of designs, of which the larger are better; shared weights rank them so, or the other way."""
    found: dict[str, dict] = {}
    rng = derive(0, "made up")
    for seed in range(3):
        for design in range(12):
            right = (rng.random(300) < 0.5 + 0.04 * design).astype(int).tolist()
            found[f"alone-{design}-{seed}"] = {"params": 100 * design, "right": right}
        winner = {"params": 5, "right": (rng.random(300) < 0.9).astype(int).tolist()}
        controls = [{"params": 5, "right": (rng.random(300) < 0.7).astype(int).tolist()} for _ in range(5)]
        ranked = [order * 0.01 * design for design in range(12)]
        found[f"spos-{seed}"] = {"shared": ranked, "winner": winner, "controls": controls}
    return found


@pytest.mark.parametrize("order", [1, -1, 0])
def test_rankings_are_compared_with_the_truth_and_with_size(shared: ModuleType, order: int) -> None:
    found = shared.ranking(rows(shared, order), "spos", 12, 3)
    assert found["tau"][0] == pytest.approx(order * found["tau of size"][0])
    assert found["tau of size"][0] > 0.7
    low, high = found["difference"][1:]
    assert low <= found["difference"][0] <= high
    assert (low <= 0 <= high) == (order == 1)


def test_the_gain_of_a_search_has_an_interval(shared: ModuleType) -> None:
    gain, low, high = shared.search_gain(rows(shared, 1), "spos", 3)["gain"]
    assert low < gain < high
    assert low > 0.1
    assert gain == pytest.approx(0.2, abs=0.03)


def test_what_is_kept_is_not_made_again(shared: ModuleType, tmp_path: Path) -> None:
    assert shared.kept(tmp_path / "new", "one", lambda: {"a": 1}) == {"a": 1}
    assert shared.kept(tmp_path / "new", "one", lambda: {"a": 2}) == {"a": 1}
    assert np.isclose(shared.tau([1, 1, 1], [1, 2, 3]), 0)
