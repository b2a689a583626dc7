import json
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from tests.evaluate.fake_table import fake_benchmark

from formwright.space.zoo import load_space

METHODS = ("random", "regularized-evolution")


@pytest.fixture
def script(script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Give the script with few methods and a fake table."""
    monkeypatch.setattr(script, "METHODS", METHODS)
    monkeypatch.setattr(script, "load_flexibench", lambda path: fake_benchmark())
    return script


@pytest.fixture
def fronts(script: ModuleType) -> ModuleType:
    from flexibert_kit import fronts

    return fronts


@pytest.fixture
def surrogate(script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    from flexibert_kit import surrogate

    monkeypatch.setattr(surrogate, "COORDINATES", ("one-hot",))
    monkeypatch.setattr(surrogate, "OBSERVATIONS", (20,))
    return surrogate


def kind(fronts: ModuleType, params: Any, validation: Any, test: Any = None) -> Any:
    scores = np.array(validation, float)
    return fronts.Kind(np.array(params, float), scores, scores if test is None else np.array(test, float))


def test_fronts_and_uniform_designs(fronts: ModuleType) -> None:
    space = load_space("flexibert-nano")
    cards = [space.card(design) for _, design in zip(range(3000), space.enumerate(), strict=False)]
    for card in cards[::97]:
        first = card.stacks[0].layers[0]
        assert fronts.is_uniform(card) == all(layer == first for layer in card.stacks[0].layers)
    assert 0 < sum(map(fronts.is_uniform, cards)) < len(cards)
    assert kind(fronts, [5, 1, 3, 3, 2], [0.9, 0.5, 0.6, 0.7, 0.5]).front() == [1, 3, 0]
    uniform = kind(fronts, [10, 20], [0.5, 0.8], [0.4, 0.7])
    mixed = kind(fronts, [8, 20, 30], [0.8, 0.9, 1.0], [0.75, 0.85, 0.6])
    found = fronts.compare(uniform, mixed)["all"]
    assert found["best uniform"] == 0.7
    assert found["best mixed"] == 0.6  # the best on validation
    assert found["mixed minus uniform at its size"] == pytest.approx(0.85 - 0.7)
    assert found["times smaller at equal quality"] == 20 / 8


def test_more_designs_do_not_win_by_their_number(fronts: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fronts, "RESAMPLES", 100)
    rng = np.random.default_rng(0)
    few, many = (kind(fronts, np.ones(n), rng.normal(size=n)) for n in (20, 2000))
    found = fronts.compare(few, many)
    assert found["all"]["best mixed"] > found["all"]["best uniform"] + 0.5
    low, _, high = found["equally many (5 %, median, 95 %)"]["mixed minus uniform at its size"]
    assert low < 0 < high


def test_a_contest_prints_draws_and_keeps_what_was_found(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    files = ["--results", str(tmp_path / "rows"), "--json", str(tmp_path / "json"), "--figures", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", ["flexibert", "--parts", "contest", "--runs", "2", "--workers", "1", *files])
    script.main()
    printed, rows = capsys.readouterr().out, (tmp_path / "rows").read_text(encoding="utf-8")
    found = json.loads((tmp_path / "json").read_text(encoding="utf-8"))
    assert (found["designs"], found["runs"], set(found["methods"])) == (200, 2, set(METHODS))
    assert [len(one["curve"]) for one in found["methods"].values()] == [100, 100]
    assert (tmp_path / "flexibert-contest.svg").read_text(encoding="utf-8").startswith("<svg")
    assert len(rows.splitlines()) == 4
    script.main()  # every search is there already
    assert (tmp_path / "rows").read_text(encoding="utf-8") == rows
    assert capsys.readouterr().out == printed


def test_an_inverted_table_has_the_best_design_where_the_worst_was(script: ModuleType) -> None:
    table = fake_benchmark().table
    turned = script.inverted(table)
    for split in ("validation", "test"):
        before, after = getattr(table, split)[:, -1], getattr(turned, split)[:, -1]
        assert np.argsort(after, kind="stable").tolist() == np.argsort(-before, kind="stable").tolist()
    assert (turned.params == table.params).all()
    assert script.inverted(turned).validation == pytest.approx(table.validation, abs=1e-6)


def test_methods_may_be_chosen_and_run_on_the_inverted_table(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = ["--results", str(tmp_path / "rows"), "--json", str(tmp_path / "json")]
    chosen = ["--parts", "inverted", "--methods", "random", "--runs", "1", "--workers", "1"]
    monkeypatch.setattr(sys, "argv", ["flexibert", *chosen, *files])
    script.main()
    assert list(json.loads((tmp_path / "json").read_text(encoding="utf-8"))["inverted"]) == ["random"]
    assert (tmp_path / "rows.inverted.npz").is_file()


def test_standings_are_printed_as_a_table_in_markdown(script: ModuleType) -> None:
    curve = [0.5] * 29 + [0.8] + [0.9] * 70
    found = {
        **dict.fromkeys(("curve", "curve_low", "curve_high"), [0.6] * 100),
        **dict.fromkeys(("test_curve", "test_curve_low", "test_curve_high"), curve),
        **{"final": 0.95, "interval": [0.94, 0.96], "test": 0.91, "test_interval": [0.9, 0.92], "seconds": 1.26},
        "top": {"designs": 1, "share": 0.25, "evaluations": None},
        "good": {"designs": 2, "share": 1.0, "evaluations": 20.0},
    }
    head, rule, row = script.table_of({"mine": found}).splitlines()
    assert head == (
        "| method | 30 evaluations: validation | 30: test | 100: validation | 100: test"
        " | best 1 designs, after | best 2 designs, after | CPU s a search |"
    )
    assert rule == "|---" * 8 + "|"
    assert row == (
        "| mine | 0.6000 [0.6000, 0.6000] | 0.8000 [0.8000, 0.8000] | 0.9500 [0.9400, 0.9600] | 0.9100 [0.9000, 0.9200]"
        " | 25%, - | 100%, 20 | 1.3 |"
    )


def test_the_surrogate_is_judged_on_designs_it_has_not_seen(surrogate: ModuleType) -> None:
    found = surrogate.judged(fake_benchmark(), repeats=1)
    noisy, plain = (found[f"one-hot, 20 observations, {kind}"] for kind in ("heteroscedastic", "homoscedastic"))
    assert 0.2 < noisy["tau"] < 1
    # only the first expects noise, so that its intervals are the wider ones
    assert plain["within the 90 % interval"] < noisy["within the 90 % interval"] <= 1
    assert -1 <= noisy["noise, Spearman"] <= 1
    assert "noise, Spearman" not in plain  # which expects none
    assert 0 <= noisy["gobi: on the box"] <= 1
    for name in surrogate.CLIMBS:
        below = noisy[f"{name}: below it, in deviations"]
        assert noisy[f"{name}: finds the highest"] == (below == 0)
        assert below >= 0


def test_the_first_axis_of_the_embedding_is_the_size(surrogate: ModuleType) -> None:
    found = surrogate.size_axis(fake_benchmark())
    assert 0.3 < found["share of the variance"] <= 1
    assert found["with total rank, Spearman"] > 0.9
    assert -1 <= found["total rank with scores, Spearman"] <= 1


def test_designs_whose_training_failed_are_not_learnt_from(surrogate: ModuleType) -> None:
    whole = fake_benchmark()
    validation = whole.table.validation.copy()
    validation[::2] = np.nan
    found = surrogate.judged(replace(whole, table=replace(whole.table, validation=validation)), repeats=1)
    assert all(np.isfinite(list(figures.values())).all() for figures in found.values())
