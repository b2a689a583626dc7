"""How long the rows of a task are in tokens: the default of `--length`, and the share of rows that a length cuts."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from formwright.tasks.encode import encode_rows
from formwright.tasks.rows import ImageRows, PlainText, Rows
from formwright.tasks.shorten import some_rows
from formwright.tasks.spans import SpanRows
from formwright.tasks.subwords import train_subwords
from formwright.tasks.task import Task
from formwright.tasks.tokeniser import Tokeniser, train_wordpiece
from formwright.tasks.windows import encode_spans

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

    Where the rows are questions about texts, a longer one is not cut but read in several `windows`. `readable` is the
    most that the model can read.
    """

    length: int
    rows: int
    cut: int
    longest: int
    readable: int
    windows: bool = False

    @property
    def share(self) -> float:
        """Give the share of the rows that are cut."""
        return self.cut / self.rows

    @property
    def is_many(self) -> bool:
        """Tell whether more rows are longer than the default leaves."""
        return self.share > 1 - _COVERED

    @property
    def sentence(self) -> str:
        """Say how many rows are cut, and which `--length` cuts none."""
        if not self.cut:
            return f"all {self.rows:,} training rows fit into {self.length} tokens"
        what = "read in several windows" if self.windows else "cut"
        # a share below 0.1 % would be shown as none
        some = f"{self.share:.1%} of the" if self.share >= _SHOWN else f"{self.cut:,} of {self.rows:,}"
        found = f"{some} training rows are longer than {self.length} tokens and are {what}"
        if rounded(self.longest) <= self.readable:
            return f"{found}; --length {rounded(self.longest)} covers all"
        return f"{found}; the longest has {self.longest:,} tokens, and the model reads at most {self.readable}"


def cut_by_default(task: Task, vocabulary: int) -> tuple[NDArray[np.int64], Cut] | None:
    """Count the tokens of training rows in a tokeniser trained on them, and what the default of a search cuts.

    No model is known yet, so that nothing but time bounds the length. None where nothing is ever cut.
    """
    rows = task.search_view().train
    if isinstance(rows, ImageRows | PlainText):
        return None
    trained = train_subwords if task.kind == "seq2seq-lm" else train_wordpiece
    some = _evenly(rows)
    sizes = uncut_sizes(some, trained(some, vocabulary))
    length, longest = min(covering(sizes), FROM_SCRATCH), int(sizes.max())
    cut = int((sizes > length).sum())
    return sizes, Cut(length, len(sizes), cut, longest, max(rounded(longest), length), isinstance(rows, SpanRows))


def uncut_sizes(rows: Rows | SpanRows, tokeniser: Tokeniser) -> NDArray[np.int64]:
    """Count the tokens of rows, or of 10,000 of them where there are more."""
    some = _evenly(rows)
    if isinstance(some, SpanRows):
        found = encode_spans(some, tokeniser, FROM_SCRATCH).encoded.uncut
    else:
        found = encode_rows(some, tokeniser, FROM_SCRATCH).uncut
    assert found is not None
    return found


def _evenly(rows: Rows | SpanRows) -> Rows | SpanRows:
    return some_rows(rows, slice(None, None, max(1, math.ceil(len(rows) / _LOOKED_AT))))


def covering(sizes: NDArray[np.int64]) -> int:
    """Give a length that cuts at most 5 % of the rows, rounded up to a multiple of 8, at least 16."""
    ordered = np.sort(sizes)
    return rounded(int(ordered[math.ceil(_COVERED * len(ordered)) - 1]))


def rounded(size: int) -> int:
    """Round a number of tokens up to a length that is worth training with."""
    return max(LEAST, -(-size // _MULTIPLE) * _MULTIPLE)
