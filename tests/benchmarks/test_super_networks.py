from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from numpy.random import default_rng
from scipy.stats import kendalltau, ttest_1samp

from formwright.cost import params
from formwright.space.zoo import load_space
from formwright.supernet.hull import find_hull

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


def test_bands_are_of_neighbouring_sizes(script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In each band of four the scores order designs as the truth does, and against it between bands."""
    monkeypatch.setattr(script.ranking, "RESAMPLES", 2)
    ranking, arms = script.ranking, {"entangled": script.ranking.Arm()}
    units, sizes = script.Units(tmp_path), [(5 * number + 1) % 12 for number in range(12)]
    for number, size in enumerate(sizes):
        units.rows[f"alone-{number}-0"] = {"params": size, "accuracy": size / 12}
    units.rows["entangled-0"] = {"scores": [size - 10 * (size // 4) for size in sizes]}
    units.rows["step-entangled"] = {"weights": 5, "step ms": 1.0, "grown MB": 2.0}
    found = ranking.figures(units, ranking.Sizes(12, 1, 1, 1), arms)["orders"]["entangled"]
    assert found["tau in bands"][0] == pytest.approx(1)
    assert found["tau"][0] < 0


def test_all_layers_of_a_design_made_by_hand_are_alike(script: ModuleType) -> None:
    for stack in (stack for one in script.found.alike(load_space("hat-nano")) for stack in one.values()):
        assert all(layer == stack["layers"][0] for layer in stack["layers"])


def test_designs_made_by_hand_keep_the_limit(script: ModuleType) -> None:
    for case in script.found.CASES.values():
        cards = script.found.made_by_hand(load_space(case.space), case)
        hull = find_hull(load_space(case.space))
        assert params(hull.smallest) < case.most < params(hull.largest)
        assert 10 <= len(cards) <= 20  # a control of one or two designs is none
        assert all(params(card) <= case.most for card in cards)


def test_shapes_made_by_hand_never_get_narrower(script: ModuleType) -> None:
    shapes = [one["widths"] for one in script.found.widening(load_space("supershaper-nano"))]
    assert len(shapes) == len({tuple(one) for one in shapes}) == 35  # four widths in four layers, with repetition
    assert all(one == sorted(one) for one in shapes)


def test_intervals_over_seeds_are_those_of_students_t(script: ModuleType) -> None:
    values = [0.1, 0.4, 0.3, 0.35]
    expected = ttest_1samp(values, 0).confidence_interval(0.95)
    assert script.found.over_seeds(values) == pytest.approx([np.mean(values), expected.low, expected.high])


def test_gains_are_paired_by_seed(script: ModuleType, tmp_path: Path) -> None:
    units, sizes = script.Units(tmp_path), {"params": 9, "by hand params": 8, "by hand tried": 20}
    for seed, (winner, random, hand) in enumerate(
        [(0.9, [0.7, 0.9], 0.85), (0.5, [0.2, 0.6], 0.5)], script.found.FIRST_SEED
    ):
        units.rows[f"found-magic-{seed}"] = {"winner": winner, "random": random, "by hand": hand, **sizes}
    found = script.found.figures(units, 2)
    assert found.keys() == {"magic"}
    assert found["magic"]["more than random"] == pytest.approx(script.found.over_seeds([0.1, 0.1]))
    assert found["magic"]["more than by hand"] == pytest.approx(script.found.over_seeds([0.05, 0.0]))
    assert "magic" in script.found.page(found)


@pytest.mark.parametrize("name", ["magic-nano", "autoformer-nano-28"])
def test_pairs_have_the_first_layer_in_common_and_differ_in_so_many_choices(script: ModuleType, name: str) -> None:
    pairs = script.interference.SPACES[name]
    for differing in range(1, len(pairs.choices) + 1):
        one, other = pairs.draw(default_rng(differing), differing)
        assert one["layers"][0] == other["layers"][0]
        cells = [
            [value for layer in both["layers"] for value in (layer.values() if isinstance(layer, dict) else [layer])]
            for both in (one, other)
        ]
        assert sum(mine != its for mine, its in zip(*cells, strict=True)) == differing
        load_space(name).from_json(one), load_space(name).from_json(other)


@pytest.mark.parametrize("seed", range(5))
def test_tau_counts_pairs_and_ties(script: ModuleType, seed: int) -> None:
    one, other = default_rng(seed).integers(6, size=(2, 15))
    assert script.ranking.tau(one, other) == pytest.approx(kendalltau(one, other).statistic)
    assert script.ranking.tau(one, np.ones(15)) == 0
