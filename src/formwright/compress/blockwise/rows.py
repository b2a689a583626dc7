"""The files of rows that a block keeps: every chain that a round judged, and those that are left with their losses."""

from math import isfinite
from pathlib import Path
from typing import Any

from formwright.compress.blockwise.folders import Folders
from formwright.compress.folders import read_json
from formwright.core.errors import IllegalInput
from formwright.nn.hf.files import can_be_read
from formwright.space.zoo.chains import Chain

Rows = list[tuple[Chain, dict[str, Any]]]


def plain_row(chain: Chain, loss: float) -> dict[str, Any]:
    """Give a row of a file; JSON has no word for a loss that is no number."""
    known = loss if isfinite(loss) else None
    return {"width": chain.width, "operations": list(chain.operations), "loss": known}


def is_trained(folders: Folders, block: int) -> bool:
    """Tell whether table and weights of a block are there and whole; where they are not, it alone is trained anew."""
    return rows_or_none(folders.table(block)) is not None and can_be_read(folders.weights(block))


def rows_or_none(path: Path) -> Rows | None:
    """Read the chains of a round or of a table, or give None where the file is missing or damaged."""
    try:
        return read_rows(path)
    except IllegalInput:
        return None


def read_rows(path: Path) -> Rows:
    """Read the chains of a round or of a table, and what is told of each."""
    try:
        found = [(Chain(row["width"], tuple(row["operations"])), row) for row in read_json(path)]
    except (KeyError, TypeError) as error:
        raise IllegalInput(f"cannot read {path}: {error}; remove it, and its stage is done anew") from None
    if not found:
        raise IllegalInput(f"{path} has no chains; remove it, and its stage is done anew")
    return found
