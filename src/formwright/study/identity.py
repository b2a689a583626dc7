"""Who works: names of workers that tell, on the same machine, whether a worker is still alive."""

import os
import socket
from collections.abc import Iterable
from pathlib import Path


def own_name() -> str:
    """Name this process: its machine, its number, and when it began, since numbers are used again."""
    return f"{socket.gethostname()}/{os.getpid()}/{_began(os.getpid())}"


def dead(workers: Iterable[str]) -> frozenset[str]:
    """Return those of the workers that ran on this machine and run no more.

    Of workers on other machines nothing can be known here: their leases have to expire.
    """
    return frozenset(worker for worker in workers if _is_dead(worker))


def _is_dead(worker: str) -> bool:
    host, process, began = ([*worker.rsplit("/", 2), "", ""])[:3]
    if host != socket.gethostname() or not process.isdecimal():
        return False
    return not _runs(int(process)) or _began(int(process)) != began


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # it runs, and belongs to someone else
        return True
    return True


def _began(process: int) -> str:
    """Tell when a process began, in ticks since the machine did; `?` where the system does not say."""
    try:
        # the name of the program stands in brackets and may hold blanks: count the fields behind it
        fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        return fields[19]
    except (OSError, IndexError):
        return "?"
