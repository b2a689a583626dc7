"""What each held-out row contributed to a model's scores, in a small file: needed to compare two models row by row.

The file may be lost. Then two models are compared by their intervals alone.
"""

import io
import math
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from formwright.core.errors import IllegalInput
from formwright.core.files import write_whole
from formwright.core.rng import derive
from formwright.tasks.bootstrap import Difference, Tables, differences, intervals, sign_of
from formwright.tasks.evidence import Evidence, Majority
from formwright.tasks.metrics import METRICS
from formwright.train.constant import Constant, constant
from formwright.train.prepare import Part, Prepared

_SAME = 1e-6  # how far a score may be from the one that its rows give


def evidence_of(metrics: Mapping[str, float], tables: Tables, prepared: Prepared, part: Part) -> Evidence:
    """Say how sure the scores of a model on some rows are, and what an answer that ignores the input scores there."""
    found, guess = intervals(tables, derive(0, "bootstrap")), constant(prepared, part)
    rows = len(next(iter(tables.values())))
    return Evidence(rows, found, None if guess is None else _majority(metrics, tables, guess))


def _majority(metrics: Mapping[str, float], tables: Tables, guess: Constant) -> Majority:
    paired = differences(tables, guess.tables, derive(0, "bootstrap"))
    ahead = {
        # the two are compared row by row alone: one answer is the same whatever rows are drawn
        name: Difference(sign_of(name) * (metrics[name] - guess.metrics[name]), interval, overlap=False)
        for name, interval in paired.items()
    }
    return Majority(guess.answer, guess.metrics, ahead)


def keep_tables(tables: Tables, folder: Path, split: str) -> None:
    """Write what each row of a split contributed."""
    file = io.BytesIO()
    np.savez_compressed(file, allow_pickle=False, **dict(tables))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(_path(folder, split), file.getvalue())
    except OSError as error:
        raise IllegalInput(f"cannot write {_path(folder, split)}: {error.strerror or error}") from error


def kept_tables(folder: Path, split: str, metrics: Mapping[str, float]) -> Tables | None:
    """Read what each row of a split contributed; None where that is lost, damaged, or of other scores than these."""
    try:
        with np.load(_path(folder, split), allow_pickle=False) as file:
            tables = {name: file[name] for name in file.files if name in METRICS}
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile):
        return None
    fitting = all(name in metrics and _gives(name, table, metrics[name]) for name, table in tables.items())
    return tables if tables and fitting else None


def _gives(name: str, table: object, score: float) -> bool:
    if not isinstance(table, np.ndarray) or table.ndim != 2 or not len(table) or table.dtype != np.float64:
        return False
    found = METRICS[name].by_row.scores(table, np.ones((1, len(table))))
    return math.isclose(float(found[0]), score, rel_tol=_SAME, abs_tol=_SAME)


def _path(folder: Path, split: str) -> Path:
    return folder / f"rows-{split}.npz"
