from pathlib import Path
from types import ModuleType

import pytest

from formwright.core.records import Request
from formwright.testing.toy_problem import Toy, small


@pytest.fixture
def table(script: ModuleType) -> object:
    space = small()
    cards = [space.card(design) for design in space.enumerate()]
    found = {card.digest: Toy().evaluate(Request(card)).metrics for card in cards}
    return script.Table(
        space, "accuracy", "params", {key: (one["accuracy"], one["params"]) for key, one in found.items()}
    )


def test_the_whole_table_has_the_whole_volume_and_the_curve_rises_to_it(
    script: ModuleType, table: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert table.volume(list(table.rows)) == pytest.approx(1.0)
    monkeypatch.setattr(script, "VALIDATIONS", 20)
    row, again = (script.search(table, "linas, ridge, rounds of 10", 3) for _ in range(2))
    assert row["curve"] == again["curve"] == sorted(row["curve"])
    assert 0 < row["curve"][0] < row["curve"][-1] <= 1


def test_a_search_that_does_not_get_there_counts_with_all_validations(script: ModuleType) -> None:
    assert script.needed([0.5, 0.96, 0.99]) == 2
    assert script.needed([0.5, 0.6, 0.7]) == 3


def test_arms_are_compared_seed_by_seed(script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(script, "RESAMPLES", 100)
    slow, quick = [0.1] * 80 + [0.99] * 70, [0.1] * 30 + [0.99] * 120
    rows = [
        {"arm": arm, "seed": seed, "curve": curve, "cpu_s": 1.5}
        for seed in range(3)
        for arm, curve in (("nsga2", slow), ("linas, ridge", quick))
    ]
    found = script.summary(rows)
    assert found["linas, ridge"]["validations"] == [31.0, 31.0, 31.0]
    assert found["linas, ridge"]["less than nsga2"] == [-50.0, -50.0, -50.0]
    assert found["linas, ridge"]["seconds of a proposal"] == pytest.approx(0.01)
    assert "| linas, ridge | 31.0 (31.0 to 31.0) | 3 of 3 | -50.0" in script.markdown(found)
    (tmp_path / "rows.jsonl").write_text('{"seed": 1}\n{"seed": 2', encoding="utf-8")  # cut off by a kill
    assert script.read(tmp_path / "rows.jsonl") == [{"seed": 1}]
