"""Scikit-learn's handwritten digits, 8 by 8 pixels, for vision designs with `PatchEmbedding(8, 2)` or `(8, 4)`."""

import numpy as np

from formwright.core.rng import derive
from formwright.tasks.draw import shuffled
from formwright.tasks.rows import ImageRows, Splits
from formwright.tasks.task import Task

_SOURCE = "sklearn.datasets.load_digits"
_TRAIN, _VALIDATION = 1_197, 300  # of 1,797


def digits_splits() -> Splits[ImageRows]:
    """Deal the images to the splits in an order that a fixed seed draws."""
    from sklearn.datasets import load_digits  # noqa: PLC0415  two seconds, and wanted by this task alone

    images, labels = load_digits(return_X_y=True)
    order = shuffled(derive(0, "digits"), len(labels))
    # as grey pictures of 8 bits hold them, so that a model scores the same on picture files
    pixels = np.rint(images.reshape(-1, 1, 8, 8) * 255 / 16).astype(np.float32) / np.float32(255)
    parts = np.split(np.array(order), [_TRAIN, _TRAIN + _VALIDATION])
    return Splits(
        *(
            ImageRows(pixels[part], labels[part].astype(np.int64), numbers=tuple(part.tolist()), source=_SOURCE)
            for part in parts
        )
    )


DIGITS = Task(
    "digits",
    "image-classification",
    "accuracy",
    digits_splits,
    labels=tuple(str(digit) for digit in range(10)),
    chance=0.1,
    about="handwritten digits of 8 by 8 pixels",
)
