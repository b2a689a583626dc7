import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def op_graph(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """Import the script as Python runs it, its folder first on the path."""
    monkeypatch.syspath_prepend(str(FOLDER))
    import op_graph

    yield op_graph
    for name in ("op_graph", "models"):
        del sys.modules[name]


@pytest.mark.slow
@pytest.mark.long
def test_every_graph_is_compared_both_ways(op_graph: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    rows = op_graph.benchmark([(2, 4, 6, 3)], turns=1)
    names = [row["row"] for row in rows]
    assert len(names) == len(set(names)) == 2 * 2 * 3
    assert all(row["ratio"] == row["ours_ms"] / row["theirs_ms"] for row in rows)
    assert [row["goal"] for row in rows] == [1.3, 1.3] + [None] * 10
    assert len(capsys.readouterr().out.splitlines()) == len(rows)
    assert json.loads(json.dumps(rows)) == rows
