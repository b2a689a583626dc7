import json
from types import ModuleType

import pytest


@pytest.mark.slow
@pytest.mark.long
def test_every_graph_is_compared_both_ways(script: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    rows = script.benchmark([(2, 4, 6, 3)], turns=1)
    names = [row["row"] for row in rows]
    assert len(names) == len(set(names)) == 2 * 2 * 3
    assert all(row["ratio"] == row["ours_ms"] / row["theirs_ms"] for row in rows)
    assert [row["goal"] for row in rows] == [1.3, 1.3] + [None] * 10
    assert len(capsys.readouterr().out.splitlines()) == len(rows)
    assert json.loads(json.dumps(rows)) == rows
