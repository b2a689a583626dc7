"""One process at a time: a lock that ends with its holder, however that comes about."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from formwright.core.errors import IllegalInput

LOCK = ".lock"


@contextmanager
def alone_in(folder: Path, *, wait: bool = True) -> Iterator[None]:
    """Wait until no other process holds a folder, which is made where it is missing, and hold it meanwhile.

    Without `wait`, a folder that is held is refused.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / LOCK).open("ab")
    except OSError as error:
        raise IllegalInput(f"cannot write {folder / LOCK}: {error.strerror or error}") from None
    with file:  # closing it ends the lock
        refusal = f"another process works in {folder}; wait for it, or name another folder"
        hold(file, refusal, wait=wait)
        yield


def hold(file: IO[bytes], refusal: str, *, wait: bool = False) -> None:
    """Hold an open file until it is closed; where another process holds it, wait or refuse with that message."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        raise IllegalInput(refusal) from None
