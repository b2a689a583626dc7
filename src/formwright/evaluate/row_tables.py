"""Contributions of each held-out row to a model's scores, in a small file, for paired comparisons of two models.

Without the file, two models are compared by their intervals alone.
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
from formwright.tasks.bootstrap import Difference, Evidence, Majority, Tables, differences, intervals, sign_of
from formwright.tasks.metrics import METRICS
from formwright.train.constant_baseline import ConstantBaseline, constant_baseline
from formwright.train.prepare import Prepared, PreparedRows

_SAME = 1e-6  # tolerance between a score and that of its rows


def evidence_of(metrics: Mapping[str, float], tables: Tables, prepared: Prepared, part: PreparedRows) -> Evidence:
    """Return the confidence intervals of a model's scores on some rows, and those of a constant baseline."""
    found, guess = intervals(tables, derive(0, "bootstrap")), constant_baseline(prepared, part)
    rows = len(next(iter(tables.values())))
    return Evidence(rows, found, None if guess is None else _majority(metrics, tables, guess))


def _majority(metrics: Mapping[str, float], tables: Tables, guess: ConstantBaseline) -> Majority:
    paired = differences(tables, guess.tables, derive(0, "bootstrap"))
    ahead = {
        # only paired intervals make sense: the baseline's answer does not depend on the rows
        name: Difference(sign_of(name) * (metrics[name] - guess.metrics[name]), interval, overlap=False)
        for name, interval in paired.items()
    }
    return Majority(guess.answer, guess.metrics, ahead)


def keep_tables(tables: Tables, folder: Path, split: str) -> None:
    file = io.BytesIO()
    np.savez_compressed(file, allow_pickle=False, **dict(tables))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(_path(folder, split), file.getvalue())
    except OSError as error:
        raise IllegalInput(f"cannot write {_path(folder, split)}: {error.strerror or error}") from error


def kept_tables(folder: Path, split: str, metrics: Mapping[str, float]) -> Tables | None:
    """Read the contributions of a split's rows; None where they are missing, damaged or of other scores."""
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
