"""Write a folder whole or not at all."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from formwright.arch.card import Card
from formwright.core.errors import FormwrightError, IllegalInput
from formwright.core.files import read_regular
from formwright.nn.seal import seal

CARD = "card.json"  # stands in every folder of ours, and tells it from others


@contextmanager
def whole_folder(target: Path, *, force: bool = False) -> Iterator[Path]:
    """Give a new folder to write into; it is sealed and becomes `target` when all went well, and vanishes otherwise.

    An empty `target` is taken over. One that is not empty is refused, unless it is a folder of ours and `force` is set.
    """
    target = Path(os.path.realpath(target))
    refuse_to_overwrite(target, force=force)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        # a name of its own, so that neither a second export nor what a killed one left behind is in the way
        part = Path(tempfile.mkdtemp(prefix=".formwright-", dir=target.parent))
    except OSError as error:
        raise IllegalInput(f"cannot write {target}: {error.strerror or error}") from error
    try:
        part.chmod(0o777 & ~_umask())
        yield part
        seal(part)
        refuse_to_overwrite(target, force=force)  # another export may have finished meanwhile
        _replace(part, target)
    except OSError as error:
        raise IllegalInput(f"cannot write {target}: {error.strerror or error}") from error
    finally:
        shutil.rmtree(part, ignore_errors=True)


def refuse_to_overwrite(target: Path, *, force: bool = False) -> None:
    """Refuse a place where something stands that is not ours to replace; cheap, so that it can be asked first."""
    if not os.path.lexists(target):
        return
    if not target.is_dir():
        raise IllegalInput(f"{target} is a file; name a folder")
    if not any(target.iterdir()):
        return
    if not _is_ours(target):
        raise IllegalInput(f"{target} holds files that are not an exported model; name another folder")
    if not force:
        raise IllegalInput(
            f"{target} holds an exported model already; use --force to replace it, or name another folder"
        )


def _is_ours(folder: Path) -> bool:
    try:
        Card.loads(read_regular(folder / CARD))
    except (OSError, FormwrightError):
        return False
    return True


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


def _umask() -> int:
    """Give the permissions that new files do not get; the system tells only when they are set."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
