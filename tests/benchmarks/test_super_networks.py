from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from numpy.random import default_rng
from scipy.stats import kendalltau

from formwright.space.zoo import load_space

SPACE = load_space("autoformer-nano-28")


def design(width: int, *layers: tuple[int, float]) -> dict[str, object]:
    return {"width": width, "layers": [{"heads": heads, "ratio": ratio} for heads, ratio in layers]}


def test_finished_units_are_kept_and_a_torn_line_is_made_again(script: ModuleType, tmp_path: Path) -> None:
    units = script.Units(tmp_path)
    assert units.kept("one", lambda: {"value": 1}) == {"value": 1}
    with (tmp_path / "units.jsonl").open("a") as file:
        file.write('{"unit": "two", "val')  # killed while it was written
    again = script.Units(tmp_path)
    assert again.kept("one", lambda: {"value": 9}) == {"value": 1}
    assert again.kept("two", lambda: {"value": 2}) == {"value": 2}
    assert set(script.Units(tmp_path).rows) == {"one", "two"}


@pytest.mark.parametrize(
    ("name", "sharing", "same"),
    [
        ("layers.0.mixer.output.bias", "disjoint", True),
        ("layers.0.feed_forward.maps.0.bias", "disjoint", False),
        ("layers.0.mixer.output.bias", "paths", False),
        ("embedding.class_token", "paths", True),
    ],
)
def test_owners_of_tensors(script: ModuleType, name: str, sharing: str, same: bool) -> None:
    """Compare two designs whose first layers differ in their feed-forward ratio alone."""
    owner = script.ranking.network.__globals__["owner"]
    one, other = (SPACE.card(SPACE.from_json(design(32, (2, ratio)))) for ratio in (0.5, 2.0))
    assert (owner(name, one, sharing) == owner(name, other, sharing)) is same


def test_an_order_is_compared_with_that_of_size(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(script.ranking, "RESAMPLES", 20)
    ranking, sizes, arms = script.ranking, script.ranking.Sizes(12, 1, 1, 2), {"entangled": script.ranking.Arm()}
    units = script.Units(tmp_path)
    for number in range(12):
        for seed in range(2):
            units.rows[f"alone-{number}-{seed}"] = {"params": -number, "accuracy": number / 12 + 0.001 * seed}
    scores = np.arange(12.0).tolist()
    units.rows |= {f"entangled-{seed}": {"scores": scores} for seed in range(2)}
    units.rows["step-entangled"] = {"weights": 5, "step ms": 1.0, "grown MB": 2.0}
    found = ranking.figures(units, sizes, arms)
    assert found["orders"]["entangled"]["tau"][0] == pytest.approx(1)
    assert found["orders"]["params"]["tau"][0] == pytest.approx(-1)
    assert found["orders"]["entangled"]["more than size"][0] == pytest.approx(2)
    assert "entangled" in ranking.page(found)


SEARCHED = ["autoformer", "supershaper", "autotinybert", "autotinybert-kd", "lighthubert", "magic"]
SEARCHED += ["hat", "linas", "fast-bert-search"]


def test_all_layers_of_a_design_made_by_hand_are_alike(script: ModuleType) -> None:
    for stack in (stack for one in script.found.alike(load_space("hat-nano")) for stack in one.values()):
        assert all(layer == stack["layers"][0] for layer in stack["layers"])


@pytest.mark.parametrize("name", SEARCHED)
def test_designs_made_by_hand_keep_the_limit(script: ModuleType, name: str) -> None:
    assert set(SEARCHED) == script.found.CASES.keys()
    case = script.found.CASES[name]
    cards = script.found.made_by_hand(load_space(case.space), case)
    bound = float(case.limit.partition("<=")[2])
    assert 1 <= len(cards) <= 20
    assert all(script.found.params(card) <= bound for card in cards)


@pytest.mark.parametrize("seed", range(5))
def test_tau_counts_pairs_and_ties(script: ModuleType, seed: int) -> None:
    one, other = default_rng(seed).integers(6, size=(2, 15))
    assert script.ranking.tau(one, other) == pytest.approx(kendalltau(one, other).statistic)
    assert script.ranking.tau(one, np.ones(15)) == 0
