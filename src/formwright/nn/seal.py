"""Checksums of a delivered folder: written last, compared whenever the folder is read.

`SHA256SUMS` has the form that `sha256sum --check SHA256SUMS` reads. A folder of someone else has none, and is read as
it is. Documents (`*.md`) are listed, and not compared: people complete their model cards.
"""

import hashlib
import re
from functools import lru_cache
from pathlib import Path, PurePosixPath

from formwright.core.errors import IllegalInput
from formwright.core.files import read_regular, write_whole

SUMS = "SHA256SUMS"
_LINE = re.compile(r"([0-9a-f]{64}) [ *](.+)")


def seal(folder: Path) -> None:
    """Write the checksums of all files in a folder; whoever adds or changes a file of it later seals it again."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path != folder / SUMS)
    lines = [f"{_digest(path)}  {path.relative_to(folder).as_posix()}\n" for path in files]
    write_whole(folder / SUMS, "".join(lines))


def write_sealed(path: Path, text: str) -> None:
    """Replace a file of a folder, and its checksum where there is one; those of the other files stay as they are."""
    write_whole(path, text)
    sums = path.parent / SUMS
    if sums.is_file():
        listed = _listed(sums) | {path.name: _digest(path)}
        write_whole(sums, "".join(f"{digest}  {name}\n" for name, digest in sorted(listed.items())))


def check_seal(folder: Path) -> None:
    """Raise IllegalInput where a file of a folder with checksums is missing or not as it was written."""
    if not (folder / SUMS).is_file():
        return
    for name, digest in _listed(folder / SUMS).items():
        path = folder / name
        if path.suffix != ".md" and not (path.is_file() and _is(path, digest)):
            differs = f"is not as it was written: its SHA-256 in {SUMS} is another"
            found = differs if path.exists() else f"is missing, and {SUMS} lists it"
            raise IllegalInput(
                f"{path} {found}. Fetch or write the folder again; if you changed it yourself, remove {folder / SUMS}"
            )


def _listed(sums: Path) -> dict[str, str]:
    try:
        found = [_LINE.fullmatch(line) for line in read_regular(sums).decode().splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise IllegalInput(f"cannot read {sums}: {error}") from None
    listed = {match[2]: match[1] for match in found if match is not None}
    outside = [name for name in listed if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts]
    if len(listed) < len(found) or outside or not listed:
        raise IllegalInput(f"{sums} is damaged: expected one line a file of the folder, a SHA-256 and its name")
    return listed


def _is(path: Path, digest: str) -> bool:
    told = path.stat()
    return _digest_of(path, told.st_size, told.st_mtime_ns, told.st_ino) == digest


@lru_cache(maxsize=1 << 10)
def _digest_of(path: Path, size: int, time: int, number: int) -> str:
    """Give the digest of a file, computed once in a process as long as the file stays as it is."""
    return _digest(path)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
