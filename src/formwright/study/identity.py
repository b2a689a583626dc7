"""Who works: names of workers that tell, on the same machine, whether a worker is still alive."""

import hashlib
import os
import socket
from collections.abc import Iterable
from pathlib import Path

_ENDED = ("Z", "X")  # states of a process that only waits for its parent to notice


def own_name() -> str:
    """Name this process: its machine, its number, and when it began, since numbers are used again."""
    return f"{_machine()}/{os.getpid()}/{_began(os.getpid())}"


def dead(workers: Iterable[str]) -> frozenset[str]:
    """Return those of the workers that ran on this machine and run no more.

    Of workers on other machines nothing can be known here: their leases have to expire.
    """
    return frozenset(worker for worker in workers if _is_dead(worker))


def _is_dead(worker: str) -> bool:
    host, process, began = ([*worker.rsplit("/", 2), "", ""])[:3]
    if host != _machine() or not process.isdecimal():
        return False
    return not _runs(int(process)) or _began(int(process)) != began


def _machine() -> str:
    """Name this machine since it was started, or this container: several of them may share a host name."""
    try:
        facts = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii") + os.readlink("/proc/self/ns/pid")
    except OSError:
        return socket.gethostname()
    return f"{socket.gethostname()}-{hashlib.sha256(facts.encode()).hexdigest()[:8]}"


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # it runs, and belongs to someone else
        return True
    return True


def _began(process: int) -> str:
    """Tell when a process began, in ticks since the machine did; `?` where the system does not say, `` if it ended."""
    try:
        # the name of the program stands in brackets and may hold blanks: count the fields behind it
        fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        return "" if fields[0] in _ENDED else fields[19]
    except (OSError, IndexError):
        return "?"
