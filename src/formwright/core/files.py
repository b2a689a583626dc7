"""How the rim of the house reads and writes files; the pure packages, this one's other modules among them, do not."""

import errno
import json
import os
import stat
from pathlib import Path
from typing import Any

from formwright.core.codec import loads
from formwright.core.errors import IllegalInput

_MOST = 1 << 28  # bytes of a file that is read whole, unless the caller says otherwise


def read_regular(path: Path, most: int = _MOST) -> bytes:
    """Read a file of at most `most` bytes; raise OSError for more, and for a pipe or device, which may never end."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # a pipe would wait for a writer
    with os.fdopen(handle, "rb") as file:
        mode = os.fstat(handle).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "it is a pipe or a device, not a file")
        data = file.read(most + 1)
    if len(data) > most:
        raise OSError(errno.EINVAL, f"it holds more than {most:,} bytes")
    return data


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file, all of it or nothing; raise OSError where that fails. Text is written as UTF-8."""
    data = content.encode() if isinstance(content, str) else content
    if path.exists() and not path.is_file():  # a device or a pipe is written to, and never replaced
        path.write_bytes(data)
        return
    target = Path(os.path.realpath(path))  # what a link points to is replaced, and the link stays
    draft = target.with_name(f".{target.name[:200]}.{os.getpid()}")
    try:
        draft.write_bytes(data)
        draft.replace(target)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def write_file(path: Path, content: str | bytes) -> None:
    """Write a file whole, and its folder where it is missing; raise `IllegalInput` where that fails."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, content)
    except OSError as error:
        raise IllegalInput(f"cannot write {path}: {error.strerror or error}") from error


def write_json(path: Path, data: Any) -> None:
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
