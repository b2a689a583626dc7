"""Score table: the scores of many designs of one space in one file of arrays and JSON, without pickle."""

import hashlib
import io
import json
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formwright.core.errors import IllegalInput
from formwright.core.files import write_whole

PREFIX = 16  # hexadecimal digits of a digest that are stored; enough to distinguish designs
_FACTS = ("space", "task", "objective", "marks", "seeds")  # required metadata
# raised by numpy and zipfile for damaged or other files; RuntimeError where one seems to be encrypted
_DAMAGED = (
    *(OSError, EOFError, ValueError, KeyError, TypeError, AttributeError),
    *(RuntimeError, SyntaxError, TokenError, zipfile.BadZipFile, zlib.error),
)


@dataclass(frozen=True, eq=False)
class ScoreTable:
    """Hold the deciding metric of designs on both splits, after each of `marks` steps; NaN where a training failed.

    Rows are sorted by `index`, the number of a design in the enumeration of its space. The first of the `seeds` made
    `validation` and `test`; the further ones, for the designs in `noise_rows`, the others.
    """

    facts: Mapping[str, Any]
    index: NDArray[np.uint32]  # (designs,), rising
    digests: NDArray[np.uint64]  # (designs,), the first digits of each
    validation: NDArray[np.float32]  # (designs, marks)
    test: NDArray[np.float32]  # (designs, marks)
    params: NDArray[np.int64]  # (designs,)
    macs: NDArray[np.int64]  # (designs,)
    latency_ms: NDArray[np.float32]  # (designs,), NaN where it was not measured
    seconds: NDArray[np.float32]  # (designs,), of the processor, for training and judging
    noise_rows: NDArray[np.uint32]  # (noisy,), rows of this table
    noise_validation: NDArray[np.float32]  # (noisy, seeds - 1, marks)
    noise_test: NDArray[np.float32]  # (noisy, seeds - 1, marks)

    def __post_init__(self) -> None:
        lacking = [name for name in _FACTS if name not in self.facts]
        if lacking:
            raise IllegalInput(f"the facts of a table of scores lack {', '.join(lacking)}")
        for name, shape in self._shapes().items():
            if getattr(self, name).shape != shape:
                raise IllegalInput(f"the array {name} has the shape {getattr(self, name).shape}, not {shape}")

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        designs, marks = len(self.index), len(self.facts["marks"])
        noisy = (len(self.noise_rows), len(self.facts["seeds"]) - 1, marks)
        single = ("index", "digests", "params", "macs", "latency_ms", "seconds")
        return {
            **dict.fromkeys(single, (designs,)),
            **dict.fromkeys(("validation", "test"), (designs, marks)),
            **dict.fromkeys(("noise_validation", "noise_test"), noisy),
        }

    def __len__(self) -> int:
        return len(self.index)

    @property
    def marks(self) -> tuple[int, ...]:
        """Return the steps after which designs were evaluated; the last is a full training."""
        return tuple(self.facts["marks"])

    @property
    def digest(self) -> str:
        """Return the SHA-256 of the facts and of all arrays, in hexadecimal."""
        content = hashlib.sha256(self._text)
        for name in _arrays():
            content.update(getattr(self, name).tobytes())
        return content.hexdigest()

    @property
    def _text(self) -> bytes:
        return json.dumps(dict(self.facts), sort_keys=True).encode()

    def write(self, path: Path) -> None:
        """Write the table to one file; equal tables give equal bytes."""
        arrays = {name: getattr(self, name) for name in _arrays()}
        with io.BytesIO() as file:
            np.savez_compressed(file, facts=np.frombuffer(self._text, np.uint8), **arrays)
            write_whole(path, file.getvalue())


def read_score_table(path: Path) -> ScoreTable:
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            facts = json.loads(arrays["facts"].tobytes())
            return ScoreTable(facts, **{name: arrays[name] for name in _arrays()})
    except _DAMAGED as error:
        raise IllegalInput(f"cannot read the table of scores {path}: {_why(error)}") from None


def _why(error: Exception) -> str:
    """Explain what is wrong with a file; numpy's own messages mislead for files that are not archives."""
    if isinstance(error, IllegalInput):
        return str(error)
    strange = "it is damaged, or not a table written by benchmarks/flexibench.py --pack"
    return error.strerror if isinstance(error, OSError) and error.strerror else strange


def prefix(digest: str) -> int:
    """Return the first digits of a digest, as a table keeps them."""
    return int(digest[:PREFIX], 16)


def _arrays() -> list[str]:
    return [entry.name for entry in fields(ScoreTable) if entry.name != "facts"]
