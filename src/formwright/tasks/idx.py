"""Tasks of pictures in IDX files, the format of MNIST and its successors."""

import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formwright.core.errors import IllegalInput
from formwright.core.remember import remember, remembers
from formwright.tasks.labelled_folders import classes_task
from formwright.tasks.rows import ImageRows, Splits
from formwright.tasks.splitting import divided
from formwright.tasks.task import Task
from formwright.tasks.text_files import MOST_WHOLE, data_folder, file_digests, opened, reading

IDX_TASKS = {
    "fashion-mnist": (
        "articles of clothing, 28 by 28 pixels",
        ("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"),
    ),
    "mnist": ("handwritten digits, 28 by 28 pixels", tuple(str(digit) for digit in range(10))),
}  # published sets of IDX files: what they show, and their classes
_IDX_NAMES = {"train": ("train",), "validation": ("validation", "val", "dev"), "test": ("t10k", "test")}
_IDX = re.compile(r".*ubyte(\.gz)?", re.IGNORECASE)
_PACKED = re.compile(r"\.gz\Z", re.IGNORECASE)
_BYTES = 8  # the type of values in an IDX file, as its third byte


@remembers
@dataclass(frozen=True)
class IdxFiles:
    """Read the pictures and labels of each split from IDX files; `digests` are those of their bytes."""

    files: tuple[tuple[str, Path, Path], ...]
    official_dev: bool
    digests: tuple[str, ...]

    def __call__(self) -> Splits[ImageRows]:
        """Return all rows, read on the first call in a process."""
        return _idx_splits(self)


def has_idx_files(folder: Path) -> bool:
    """Return whether a folder has pictures and labels in IDX files."""
    return folder.is_dir() and bool(_idx_files(folder))


def idx_task(name: str, folder: Path | None, official_dev: bool = False) -> Task:
    """Make a task of the IDX files `train-images...-ubyte`, `train-labels...-ubyte`, and those of `t10k` or `test`.

    Without validation files, a tenth of the training rows is kept for validation.
    """
    if folder is None:
        raise IllegalInput(f"the task {name!r} is read from its files; give their folder with --data DIR")
    folder = data_folder(folder, name)
    files = tuple(_idx_files(folder))
    if not files:
        raise IllegalInput(
            f"no training rows in {folder}: expected train-images-idx3-ubyte and train-labels-idx1-ubyte, or with .gz"
        )
    source = IdxFiles(files, official_dev, file_digests([path for _, *both in files for path in both]))
    # a published set keeps its classes whatever its folder is called; a folder of that name needs no --data
    about, labels = IDX_TASKS.get(name) or IDX_TASKS.get(folder.name, ("", ()))
    splits = source()
    if len(seen := np.unique(splits.train.labels)) < 2:
        raise IllegalInput(f"all training pictures of {folder} have the label {seen[0]}; expected at least two labels")
    count = max(len(labels), 1 + max(int(rows.labels.max(initial=0)) for rows in (splits.train, splits.validation)))
    labels = labels if len(labels) == count else tuple(str(label) for label in range(count))
    return classes_task(name, "image-classification", source, labels, about or f"pictures of {folder.name}")


@remember
def _idx_splits(source: IdxFiles) -> Splits[ImageRows]:
    rows = {}
    for split, pictures, labels in source.files:
        pixels, classes = read_idx_pictures(pictures), read_idx(labels)
        if classes.ndim != 1 or len(classes) != len(pixels):
            raise IllegalInput(f"{pictures} has {len(pixels):,} pictures, but {labels} {len(classes):,} labels")
        places = tuple(range(len(pixels)))
        rows[split] = ImageRows(pixels[:, None], classes.astype(np.int64), numbers=places, source=str(pictures))
    return divided(rows, source.official_dev, by_class=True)


def idx_pictures(path: Path) -> Path | None:
    """Return the IDX file of pictures that a path names: itself, or in a folder the test pictures or the only ones."""
    if not path.is_dir():
        return path if _IDX.fullmatch(path.name) else None
    with reading(path):
        names = sorted(file for file in path.iterdir() if _IDX.fullmatch(file.name) and "images" in file.name.lower())
    files = {_PACKED.sub("", file.name): file for file in reversed(names)}  # unpacked, if both are there
    found = [file for name, file in files.items() if name.lower().startswith(_IDX_NAMES["test"])] or [*files.values()]
    if len(found) > 1:
        raise IllegalInput(f"{path} has {', '.join(sorted(file.name for file in found))}; name one of these files")
    return found[0] if found else None


def read_idx_pictures(path: Path) -> NDArray[np.uint8]:
    """Read the pictures of an IDX file (rows, side, side)."""
    pixels = read_idx(path)
    if pixels.ndim != 3 or pixels.shape[1] != pixels.shape[2]:
        raise IllegalInput(f"{path} has values of shape {pixels.shape}; expected (pictures, side, side)")
    return pixels


def read_idx(path: Path) -> NDArray[np.uint8]:
    """Read an IDX file of bytes, plain or gzip."""
    with opened(path) as file:
        content = file.read(MOST_WHOLE + 1)
    if len(content) > MOST_WHOLE:
        raise IllegalInput(f"{path} holds more than {MOST_WHOLE:,} bytes, unpacked, which is more than is read at once")
    if len(content) < 4 or content[:2] != b"\0\0" or content[2] != _BYTES:
        raise IllegalInput(f"{path} is not an IDX file of bytes: expected to begin with 0, 0, {_BYTES}")
    start = 4 + 4 * content[3]
    if len(content) < start:
        raise IllegalInput(f"{path} ends within its header: download it again")
    shape = tuple(int(size) for size in np.frombuffer(content[4:start], ">i4"))
    expected = math.prod(shape)
    if min(shape, default=0) < 0 or len(content) - start != expected:
        size, n = " x ".join(map(str, shape)), len(content) - start
        raise IllegalInput(f"the header of {path} declares {size} values, but the file has {n:,}: download it again")
    return np.frombuffer(content, np.uint8, offset=start).reshape(shape)


def _idx_files(folder: Path) -> list[tuple[str, Path, Path]]:
    """List the splits of a folder with their pictures and their labels; empty without training files."""
    with reading(folder):
        names = sorted(path for path in folder.iterdir() if _IDX.fullmatch(path.name))
    found: list[tuple[str, Path, Path]] = []
    for split, stems in _IDX_NAMES.items():
        pair: list[Any] = []
        for what in ("images", "labels"):
            files = [path for path in names if path.name.lower().startswith(stems) and what in path.name.lower()]
            plain = {_PACKED.sub("", path.name): path for path in reversed(files)}  # unpacked, if both are there
            if len(plain) > 1:
                raise IllegalInput(f"{folder} has {', '.join(plain)}; expected one file of {what} for {split}")
            pair += plain.values()
        if len(pair) == 1:
            raise IllegalInput(f"{folder} has {pair[0].name}, but not both pictures and labels for {split}")
        if pair:
            found.append((split, pair[0], pair[1]))
    return found if found and found[0][0] == "train" else []
