"""Write a model folder whole or not at all, with checksums that are compared whenever it is read.

`SHA256SUMS` has the form that `sha256sum --check SHA256SUMS` reads. A folder from elsewhere has none, and is read as
it is. Documents (`*.md`) are listed but not compared: people complete their model cards.
"""

import hashlib
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path, PurePosixPath
from uuid import uuid4

from formwright.arch.card import Card
from formwright.core.errors import FormwrightError, IllegalInput
from formwright.core.files import read_regular, write_whole

SUMS = "SHA256SUMS"
_LINE = re.compile(r"([0-9a-f]{64}) [ *](.+)")


def write_checksums(folder: Path) -> None:
    """Write the checksums of all files in a folder; to be repeated after any file is added or changed."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path != folder / SUMS)
    lines = [f"{_digest(path)}  {path.relative_to(folder).as_posix()}\n" for path in files]
    write_whole(folder / SUMS, "".join(lines))


def replace_file(path: Path, text: str) -> None:
    """Replace a file of a folder and its checksum, if it has one; other checksums stay."""
    write_whole(path, text)
    sums = path.parent / SUMS
    if sums.is_file():
        listed = _listed(sums) | {path.name: _digest(path)}
        write_whole(sums, "".join(f"{digest}  {name}\n" for name, digest in sorted(listed.items())))


def verify_checksums(folder: Path) -> None:
    """Raise `IllegalInput` if a file of a folder with checksums is missing or has changed."""
    if not (folder / SUMS).is_file():
        return
    for name, digest in _listed(folder / SUMS).items():
        path = folder / name
        if path.suffix != ".md" and not (path.is_file() and _cached_digest(path, path.stat()) == digest):
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


def _cached_digest(path: Path, status: os.stat_result) -> str:
    """Return the digest of a file, computed once in a process as long as the file stays as it is."""
    return _digest_of(path, status.st_size, status.st_mtime_ns, status.st_ino)


@lru_cache(maxsize=1 << 10)
def _digest_of(path: Path, *_: int) -> str:
    return _digest(path)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


CARD = "card.json"  # marks a folder as one of ours


@contextmanager
def whole_folder(target: Path, *, force: bool = False) -> Iterator[Path]:
    """Yield a new folder to write into; on success it gets checksums and becomes `target`, otherwise it is removed.

    A `target` that is not empty is only replaced if it is one of our folders and `force` is set.
    """
    target = Path(os.path.realpath(target))
    refuse_to_overwrite(target, force=force)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        # a name of its own, so that neither a second export nor what a killed one left behind is in the way
        part = target.parent / f".formwright-{uuid4().hex}"
        part.mkdir()
    except OSError as error:
        raise IllegalInput(f"cannot write {target}: {error.strerror or error}") from error
    try:
        yield part
        write_checksums(part)
        refuse_to_overwrite(target, force=force)  # another export may have finished meanwhile
        _replace(part, target)
    except OSError as error:
        raise IllegalInput(f"cannot write {target}: {error.strerror or error}") from error
    finally:
        shutil.rmtree(part, ignore_errors=True)


def refuse_to_overwrite(target: Path, *, force: bool = False) -> None:
    """Raise if `target` exists and may not be replaced; cheap, so that it can be checked first."""
    if not os.path.lexists(target):
        return
    if not target.is_dir():
        raise IllegalInput(f"{target} is a file; name a folder")
    if not any(target.iterdir()):
        return
    try:
        Card.loads(read_regular(target / CARD))
    except (OSError, FormwrightError):
        raise IllegalInput(f"{target} holds files that are not an exported model; name another folder") from None
    if not force:
        raise IllegalInput(
            f"{target} holds an exported model already; use --force to replace it, or name another folder"
        )


def _replace(part: Path, target: Path) -> None:
    if not target.exists() or not any(target.iterdir()):
        part.rename(target)  # also onto an empty folder; one that was filled meanwhile fails
        return
    old = part.with_name(f"{part.name}-old")
    target.rename(old)
    try:
        part.rename(target)
    except BaseException:
        old.rename(target)
        raise
    shutil.rmtree(old, ignore_errors=True)
