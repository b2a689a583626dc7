"""Files of plain JSON data: written whole, and known for damaged where they are."""

import json
from pathlib import Path
from typing import Any

from formwright.core.codec import loads
from formwright.core.errors import IllegalInput
from formwright.core.files import read_regular, write_whole


def write_file(path: Path, content: str | bytes) -> None:
    """Write a file whole, and its folder where it is missing; raise `IllegalInput` where that fails."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, content)
    except OSError as error:
        raise IllegalInput(f"cannot write {path}: {error.strerror or error}") from error


def write_json(path: Path, data: Any) -> None:
    """Write plain data whole."""
    write_file(path, json.dumps(data, indent=1))


def read_json(path: Path) -> Any:
    """Read what `write_json` wrote."""
    try:
        return loads(read_regular(path))
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from None


def unreadable(path: Path, why: object) -> IllegalInput:
    """Give the error of a file that cannot be read as what it was written for."""
    return IllegalInput(f"cannot read {path}: {why}; remove it, and its stage runs again")
