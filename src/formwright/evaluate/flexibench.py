"""FlexiBench: designs of the small FlexiBERT space, trained on a builtin task, as a table in this package."""

from importlib.resources import as_file, files
from pathlib import Path

from formwright.core.errors import IllegalInput
from formwright.evaluate.benchmark import Benchmark
from formwright.evaluate.score_table import read_score_table
from formwright.space.zoo import load_space

_FILE = "flexibench.npz"


def load_flexibench(path: Path | None = None) -> Benchmark:
    """Read the table that comes with this package, or another file that `benchmarks/flexibench.py --pack` wrote."""
    if path is not None:
        return _read(path)
    found = files("formwright.evaluate") / "tables" / _FILE
    if not found.is_file():
        raise IllegalInput(f"this installation lacks {_FILE}; make one with benchmarks/flexibench.py --pack FILE")
    with as_file(found) as packed:
        return _read(packed)


def _read(path: Path) -> Benchmark:
    table = read_score_table(path)
    return Benchmark(table, load_space(table.facts["space"]))
