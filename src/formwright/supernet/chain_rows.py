"""Files of chains: every chain of a block that a round judged, and those that are left, with their losses."""

from math import isfinite
from pathlib import Path
from typing import Any

from formwright.core.errors import IllegalInput
from formwright.core.files import read_json, unreadable
from formwright.space.zoo.chains import Chain

Rows = list[tuple[Chain, dict[str, Any]]]


def plain_row(chain: Chain, loss: float) -> dict[str, Any]:
    """Give a row of a file; JSON cannot hold NaN and infinity."""
    known = loss if isfinite(loss) else None
    return {"width": chain.width, "operations": list(chain.operations), "loss": known}


def rows_or_none(path: Path) -> Rows | None:
    """Read a file of chains, or give None where it is missing or damaged."""
    try:
        return read_rows(path)
    except IllegalInput:
        return None


def read_rows(path: Path) -> Rows:
    try:
        found = [(Chain(row["width"], tuple(row["operations"])), row) for row in read_json(path)]
    except (KeyError, TypeError) as error:
        raise unreadable(path, error) from None
    if not found:
        raise unreadable(path, "it has no chains")
    return found
