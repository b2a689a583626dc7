import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from formwright.arch.distance import overlap_fraction

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def transfer(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """Import the script as Python runs it, its folder first on the path."""
    monkeypatch.syspath_prepend(str(FOLDER))
    import transfer

    yield transfer
    del sys.modules["transfer"]


def test_pairs_share_what_they_should(transfer: ModuleType) -> None:
    for overlap in transfer.OVERLAPS:
        pairs = [transfer.pair(overlap, number) for number in range(10)]
        assert {overlap_fraction(query, neighbour) for query, neighbour in pairs} == {overlap}
        assert len({query.digest for query, _ in pairs}) == 10
        assert all(query != neighbour for query, neighbour in pairs)


def test_a_search_asks_for_no_design_twice(transfer: ModuleType) -> None:
    for seed in range(3):
        cards = transfer.drawn(seed)
        assert len(cards) == len({card.digest for card in cards}) == transfer.SEARCHED
    assert transfer.drawn(0) == transfer.drawn(0) != transfer.drawn(1)


def test_what_is_spared_is_counted_among_different_designs(
    transfer: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfer, "drawn", lambda seed: list(transfer.pair(0.75, 0)))
    assert [transfer.spared(threshold, searches=1) for threshold in (0.7, 0.8)] == [0.5, 0.0]


def test_a_lower_threshold_spares_more(transfer: ModuleType) -> None:
    high, low = (transfer.spared(threshold, searches=2) for threshold in (0.8, 0.5))
    assert 0 < high < low < 1


@pytest.mark.slow
@pytest.mark.long
def test_finished_queries_are_kept_and_summed_up(
    transfer: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    files = ["--rows", str(tmp_path / "rows"), "--json", str(tmp_path / "figures")]
    short = ["--queries", "1", "--seeds", "1", "--steps", "2", "--pretrain-steps", "3"]
    monkeypatch.setattr(sys, "argv", ["transfer", *short, *files])
    transfer.main()
    rows = (tmp_path / "rows").read_text(encoding="utf-8")
    found = [json.loads(line) for line in rows.splitlines()]
    assert [row["overlap"] for row in found] == list(transfer.OVERLAPS)
    assert [found[0][way]["steps"] for way in transfer.WAYS] == [5, 2, 2]
    figures = json.loads((tmp_path / "figures").read_text(encoding="utf-8"))
    assert figures["overlaps"]["0.5"]["runs"] == 1
    assert "overlap 1.0:" in capsys.readouterr().out
    transfer.main()
    assert (tmp_path / "rows").read_text(encoding="utf-8") == rows
