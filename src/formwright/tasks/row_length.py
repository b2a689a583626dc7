"""Row lengths in tokens: the default of `--length`, and the share of rows that it truncates."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formwright.tasks.kind import Kind, kind_of
from formwright.tasks.task import Task, some_rows

FROM_SCRATCH, PRETRAINED = 128, 256  # the longest default: the time of a step grows with the length
LEAST = 16  # the shortest default
PIECES = 64  # tokens of the pieces into which texts without labels are divided
_COVERED = 0.95  # share of the training rows that the default covers
_MULTIPLE = 8
_SHOWN = 0.001
_LOOKED_AT = 10_000  # rows that decide the default, evenly spaced


@dataclass(frozen=True)
class Cut:
    """How many of `rows` training rows are longer than `length` tokens; `longest` is the length of the longest.

    Long texts of questions are not truncated but read in several `windows`. `readable` is the maximum length of the
    model, and `fewer` the option by which 95 % of the rows fit into it, where there is one.
    """

    length: int
    rows: int
    cut: int
    longest: int
    readable: int
    windows: bool = False
    unit: str = "tokens"
    fewer: str = ""

    @property
    def share(self) -> float:
        """Return the share of the rows that are cut."""
        return self.cut / self.rows

    @property
    def is_many(self) -> bool:
        """Return whether more than 5 % of the rows are truncated."""
        return self.share > 1 - _COVERED

    @property
    def sentence(self) -> str:
        """Describe how many rows are truncated, and which `--length` covers all."""
        if not self.cut:
            return f"all {self.rows:,} training rows fit into {self.length} {self.unit}"
        what = "read in several windows" if self.windows else "cut"
        # a share below 0.1 % would be shown as none
        some = f"{self.share:.1%} of the" if self.share >= _SHOWN else f"{self.cut:,} of {self.rows:,}"
        found = f"{some} training rows are longer than {self.length} {self.unit} and are {what}"
        if rounded(self.longest) <= self.readable:
            return f"{found}; --length {rounded(self.longest)} covers all"
        found += f"; the longest has {self.longest:,} {self.unit}, and the model reads at most {self.readable}"
        return f"{found}; training with {self.fewer} covers {_COVERED:.0%}" if self.fewer else found

    def report(self, *, is_default: bool) -> str:
        """Say how many rows are cut, with a warning where they are many.

        Empty where the user chose the length and nothing is cut.
        """
        if not (self.cut or is_default):
            return ""
        bounded = is_default and self.is_many and self.length < self.readable
        bound = f"; the default is at most {self.length} {self.unit}, to save time" if bounded else ""
        return f"{'warning: ' if self.is_many and not self.windows else ''}{self.sentence}{bound}"


def cut_by(kind: Kind, examples: Any, length: int, readable: int) -> Cut | None:
    """Count the rows among the examples of a kind that a length truncates; None where nothing is ever truncated."""
    if (uncut := examples.uncut) is None:
        return None
    fewer, covered = "", _covered(uncut) if len(uncut) else 0
    if covered > readable and kind.fewer is not None:
        fewer = kind.fewer(examples, covered, readable)
    cut, longest = int((uncut > length).sum()), int(uncut.max(initial=0))
    return Cut(length, len(uncut), cut, longest, readable, kind.windows, kind.reads, fewer)


def cut_by_default(task: Task, vocabulary: int) -> tuple[NDArray[np.int64], Cut] | None:
    """Return the training rows' lengths in a tokeniser trained on them, and what the default length truncates.

    No model is known yet, so the length has no upper limit but time. None where nothing is ever
    truncated, and where only a card says how long rows are.
    """
    kind, rows = kind_of(task), _sampled(task.search_view().train)
    if not kind.cuts or not kind.has_tokens:
        return None
    sizes = uncut_sizes(kind, rows, kind.train_tokeniser(rows, vocabulary))
    length, longest = min(covering(sizes), FROM_SCRATCH), int(sizes.max())
    cut = int((sizes > length).sum())
    return sizes, Cut(length, len(sizes), cut, longest, max(rounded(longest), length), kind.windows)


def uncut_sizes(kind: Kind, rows: Any, tokeniser: Any) -> NDArray[np.int64]:
    """Count the tokens of rows of a kind, or of 10,000 of them where there are more."""
    found: NDArray[np.int64] = kind.examples(_sampled(rows), tokeniser, FROM_SCRATCH).uncut
    return found


def _sampled(rows: Any) -> Any:
    return some_rows(rows, slice(None, None, max(1, math.ceil(len(rows) / _LOOKED_AT))))


def covering(sizes: NDArray[np.int64]) -> int:
    """Return a length that cuts at most 5 % of the rows, rounded up to a multiple of 8, at least 16."""
    return rounded(_covered(sizes))


def _covered(sizes: NDArray[np.int64]) -> int:
    return int(np.sort(sizes)[math.ceil(_COVERED * len(sizes)) - 1])


def rounded(size: int) -> int:
    """Round a number of tokens up to a multiple of 8, at least 16."""
    return max(LEAST, -(-size // _MULTIPLE) * _MULTIPLE)
