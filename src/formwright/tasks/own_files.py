"""Find the files of a task of a user's own: one file, or a folder with one for each split."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from formwright.core.errors import IllegalInput
from formwright.core.remember import remember, remembers
from formwright.tasks.rows import Splits
from formwright.tasks.text_files import files_digest, reading

SPLIT_NAMES = {"train": ("train",), "validation": ("validation", "valid", "val", "dev"), "test": ("test",)}
Files = tuple[tuple[str, Path], ...]  # by split, the training rows first


def split_files(path: Path, fits: Callable[[Path], object], ends: str) -> Files:
    """Return the file of each split: of a folder those that fit, called train, validation and test, or the file itself.

    `ends` says how names may end. Raise if there are no training rows, or several files for a split.
    """
    path = Path(os.path.abspath(path))
    if not os.path.isdir(path):  # unlike `Path.is_dir`, returns false for a name that is too long
        if not fits(path):
            raise IllegalInput(f"{path} is neither a folder nor a file ending in {ends}")
        return (("train", path),)
    found = {split: file for split, stems in SPLIT_NAMES.items() if (file := _only(path, stems, fits)) is not None}
    if "train" not in found:
        raise IllegalInput(f"no training rows in {path}: looked for a file called train with the end {ends}")
    return tuple(found.items())


def training_file(path: Path) -> Path | None:
    """Return the file with the training rows of a path: itself, or the first called train of a folder."""
    if os.path.isfile(path):
        return path
    if not os.path.isdir(path):
        return None
    with reading(path):
        return next((file for file in sorted(path.iterdir()) if file.name.split(".")[0].lower() == "train"), None)


def _only(folder: Path, stems: tuple[str, ...], fits: Callable[[Path], object]) -> Path | None:
    with reading(folder):
        files = sorted(folder.iterdir())
    found = [file for file in files if file.name.split(".")[0].lower() in stems and fits(file)]
    if len(found) > 1:
        raise IllegalInput(f"{folder} has {', '.join(file.name for file in found)}; expected one of them")
    return found[0] if found else None


def check_unchanged(files: Files, digest: str) -> None:
    """Raise if the bytes of some files no longer have this digest."""
    if files_digest(file for _, file in files) != digest:
        names = ", ".join(str(file) for _, file in files)
        raise IllegalInput(f"the task was made of files that have changed since: {names}; make the task again")


@dataclass(frozen=True)
class NamedSplits:
    """All rows of a task, and the names of its labels."""

    labels: tuple[str, ...]
    splits: Splits[Any]


Reader = Callable[[Mapping[str, Path], bool], NamedSplits]


@remembers
@dataclass(frozen=True)
class ReadFiles:
    """Read the splits of a task from files; `digest` is that of their bytes, so that a changed file is noticed.

    `read` is a function that another process can import; it receives the files by split, and `official_dev`.
    """

    files: Files
    read: Reader
    official_dev: bool
    digest: str

    @classmethod
    def of(cls, files: Files, read: Reader, official_dev: bool) -> "ReadFiles":
        """Note what the files hold now."""
        return cls(files, read, official_dev, files_digest(file for _, file in files))

    def __call__(self) -> Splits[Any]:
        """Return all rows, read on the first call in a process."""
        return self.found.splits

    @property
    def found(self) -> NamedSplits:
        """Return all rows and the names of the labels."""
        return _read(self)


@remember
def _read(source: ReadFiles) -> NamedSplits:
    check_unchanged(source.files, source.digest)
    return source.read(dict(source.files), source.official_dev)
