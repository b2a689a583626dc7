import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

from formwright.arch.distance import overlap_fraction


def test_pairs_share_what_they_should(script: ModuleType) -> None:
    for overlap in script.OVERLAPS:
        pairs = [script.pair(overlap, number) for number in range(10)]
        assert {overlap_fraction(query, neighbour) for query, neighbour in pairs} == {overlap}
        assert len({query.digest for query, _ in pairs}) == 10
        assert all(query != neighbour for query, neighbour in pairs)


def test_a_search_asks_for_no_design_twice(script: ModuleType) -> None:
    for seed in range(3):
        cards = script.drawn(seed)
        assert len(cards) == len({card.digest for card in cards}) == script.SEARCHED
    assert script.drawn(0) == script.drawn(0) != script.drawn(1)


def test_what_is_spared_is_counted_among_different_designs(script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(script, "drawn", lambda seed: list(script.pair(0.75, 0)))
    assert [script.spared(threshold, searches=1) for threshold in (0.7, 0.8)] == [0.5, 0.0]


def test_a_lower_threshold_spares_more(script: ModuleType) -> None:
    high, low = (script.spared(threshold, searches=2) for threshold in (0.8, 0.5))
    assert 0 < high < low < 1


@pytest.mark.slow
@pytest.mark.long
def test_finished_queries_are_kept_and_summed_up(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    files = ["--rows", str(tmp_path / "rows"), "--json", str(tmp_path / "figures")]
    short = ["--queries", "1", "--seeds", "1", "--steps", "2", "--pretrain-steps", "3"]
    monkeypatch.setattr(sys, "argv", ["transfer", *short, *files])
    script.main()
    rows = (tmp_path / "rows").read_text(encoding="utf-8")
    found = [json.loads(line) for line in rows.splitlines()]
    assert [row["overlap"] for row in found] == list(script.OVERLAPS)
    assert [found[0][way]["steps"] for way in script.WAYS] == [5, 2, 2]
    figures = json.loads((tmp_path / "figures").read_text(encoding="utf-8"))
    assert figures["overlaps"]["0.5"]["runs"] == 1
    assert "overlap 1.0:" in capsys.readouterr().out
    script.main()
    assert (tmp_path / "rows").read_text(encoding="utf-8") == rows
