"""A tabular benchmark: a space, and a table with the scores of its designs; FlexiBench comes with the package.

A table is one file of arrays and JSON, without pickle.
"""

import hashlib
import io
import json
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from importlib.resources import as_file, files
from pathlib import Path
from tokenize import TokenError
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from formwright.core.errors import EvaluationFailed, IllegalInput
from formwright.core.files import write_whole
from formwright.core.protocols import CardLike, Evaluator
from formwright.core.records import Objective, Observation, Request, Spent
from formwright.evaluate.context import Context
from formwright.space.space import Space
from formwright.space.zoo import load_space

PREFIX = 16  # hexadecimal digits of a digest that are stored; enough to distinguish designs
_FACTS = ("space", "task", "objective", "marks", "seeds")  # required metadata
# raised by numpy and zipfile for damaged or other files; RuntimeError where one seems to be encrypted
_DAMAGED = (
    *(OSError, EOFError, ValueError, KeyError, TypeError, AttributeError),
    *(RuntimeError, SyntaxError, TokenError, zipfile.BadZipFile, zlib.error),
)

Split = Literal["validation", "test"]
Floats = NDArray[np.float64]


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


@dataclass(frozen=True)
class Noise:
    """Standard deviation of scores between seeds, and between the mean scores of designs."""

    designs: int
    seeds: int
    between_seeds: float
    between_designs: float


@dataclass(frozen=True, eq=False)
class Benchmark:
    """A table of scores and its space.

    Where the table has only some designs of the space, searchers are given the whole space and `legal`, which every
    searcher respects, so that moves and samplers need not know the table.
    """

    table: ScoreTable
    space: Space

    @property
    def objective(self) -> Objective:
        return Objective.parse(self.table.facts["objective"])

    @property
    def steps(self) -> int:
        return self.table.marks[-1]

    def legal(self, card: CardLike) -> bool:
        return prefix(card.digest) in self._rows

    def row(self, card: CardLike) -> int:
        found = self._rows.get(prefix(card.digest))
        if found is None:
            raise IllegalInput(f"the table of {len(self.table):,} designs has none with the digest {card.digest}")
        return found

    def evaluator(self, split: Split = "validation") -> Evaluator:
        """Return the evaluator of a split: `validation` for a search, `test` for its result."""
        if split not in get_args(Split):
            raise IllegalInput(f"a table has the splits {' and '.join(get_args(Split))}, not {split!r}")
        return _FromTable(self, split)

    def costs(self, row: int) -> dict[str, float]:
        found = {name: float(getattr(self.table, name)[row]) for name in ("params", "macs", "latency_ms")}
        return {name: value for name, value in found.items() if np.isfinite(value)}

    def scores(self, split: Split = "validation") -> Floats:
        """Return the score of each row after a full training; NaN where that failed."""
        column: Floats = getattr(self.table, split)[:, -1].astype(np.float64)
        return column

    @cached_property
    def ranks(self) -> NDArray[np.int64]:
        """Return the place of each row by its validation score: 1 is the best; equal scores share the better place."""
        scores = self.scores() if self.objective.direction == "max" else -self.scores()
        falling = np.sort(-scores)  # failed ones, NaN, come last
        place = np.searchsorted(falling, -scores, side="left") + 1
        return np.where(np.isnan(scores), len(scores), place)

    def noise(self, split: Split = "validation") -> Noise:
        """Estimate the noise between seeds, from the designs that were trained with several of them."""
        rows = self.table.noise_rows
        more: NDArray[np.float32] = getattr(self.table, f"noise_{split}")[:, :, -1]
        scores = np.column_stack([self.scores(split)[rows], more])  # (designs, seeds)
        whole = scores[np.isfinite(scores).all(axis=1)]
        if whole.shape[0] < 2 or whole.shape[1] < 2:
            raise IllegalInput("the table has no designs that were trained with several seeds")
        within = float(whole.var(axis=1, ddof=1).mean())
        means = float(whole.mean(axis=1).var(ddof=1)) - within / whole.shape[1]  # minus the contribution of the seeds
        return Noise(whole.shape[0], whole.shape[1], within**0.5, max(means, 0.0) ** 0.5)

    @cached_property
    def _rows(self) -> dict[int, int]:
        return {int(digits): row for row, digits in enumerate(self.table.digests)}


@dataclass(frozen=True, eq=False)
class _FromTable:
    benchmark: Benchmark
    split: Split

    def evaluate(self, request: Request, _: Context) -> Observation:
        benchmark = self.benchmark
        row, marks = benchmark.row(request.card), benchmark.table.marks
        scores = getattr(benchmark.table, self.split)[row].tolist()
        if not np.isfinite(scores).all():
            raise EvaluationFailed("the training of this design failed when the table was made")
        steps = request.budget.steps or benchmark.steps
        if steps not in marks:
            raise IllegalInput(f"the table has this design after {', '.join(map(str, marks))} steps, not after {steps}")
        score = scores[marks.index(steps)]
        seconds = float(benchmark.table.seconds[row]) * steps / benchmark.steps
        return Observation({benchmark.objective.name: score, **benchmark.costs(row)}, Spent(seconds, steps))


_FILE = "flexibench.npz"


def load_flexibench(path: Path | None = None) -> Benchmark:
    """Read the table that comes with this package, or another file that `benchmarks/flexibench.py --pack` wrote."""
    if path is not None:
        return _read(path)
    found = files("formwright.evaluate") / "tables" / _FILE
    if not found.is_file():
        raise IllegalInput(f"this installation lacks {_FILE}; make one with benchmarks/flexibench.py --pack FILE")
    with as_file(found) as packed:
        return _read(packed)


def _read(path: Path) -> Benchmark:
    table = read_score_table(path)
    return Benchmark(table, load_space(table.facts["space"]))
