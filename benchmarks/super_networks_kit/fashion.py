"""Fashion-MNIST from its IDX files: 55,000 rows to learn from, 5,000 to validate, 10,000 to test."""

import gzip
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from formwright.tasks.rows import ImageRows, Splits
from formwright.tasks.task import Task

_VALIDATION = 5_000


@dataclass(frozen=True)
class FashionSplits:
    """Read the files of a folder; the last rows of the training file are validated on."""

    folder: Path

    def __call__(self) -> Splits[ImageRows]:
        train, test = (self._read(part) for part in ("train", "t10k"))
        edge = len(train) - _VALIDATION
        parts = (ImageRows(train.pixels[rows], train.labels[rows]) for rows in (slice(edge), slice(edge, None)))
        return Splits(*parts, test)

    def _read(self, part: str) -> ImageRows:
        pixels = gzip.decompress((self.folder / f"{part}-images-idx3-ubyte.gz").read_bytes())[16:]
        labels = gzip.decompress((self.folder / f"{part}-labels-idx1-ubyte.gz").read_bytes())[8:]
        images = np.frombuffer(pixels, np.uint8).reshape(-1, 1, 28, 28).astype(np.float32) / np.float32(255)
        return ImageRows(images, np.frombuffer(labels, np.uint8).astype(np.int64))


def fashion(folder: Path) -> Task:
    labels = tuple(str(label) for label in range(10))
    return Task("fashion-mnist", "image-classification", "accuracy", FashionSplits(folder), labels=labels, chance=0.1)
