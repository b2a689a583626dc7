"""Judge a model a few rows at a time, and stop once a rival is surely better: most models of a search are worse."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formwright.core.rng import derive

Answers = NDArray[Any]
Answer = Callable[[NDArray[np.int64]], Answers]  # gives a model's answers to some rows
Score = Callable[[Answers, Answers], float]  # of answers and what is right, larger being better


@dataclass(frozen=True)
class Rules:
    """Say how a race is run: rows before the first look, how fast they grow, and when a look decides.

    A look draws `samples` resamples of the rows seen so far. The race is over where the rival is better in all but a
    share of `doubt` of them.
    """

    first: int = 64
    growth: float = 1.5
    samples: int = 200
    doubt: float = 0.01


@dataclass(frozen=True, eq=False)
class Ran:
    """How far a model came: the rows it answered, and its answers to them; `whole` where these are all rows."""

    rows: NDArray[np.int64]
    answers: Answers
    whole: bool


def race(answer: Answer, truth: Answers, rival: Answers | None, score: Score, rules: Rules | None = None) -> Ran:
    """Let a model answer row after row, in an order that is the same for all, until its rival is surely better.

    Without a rival it answers all rows.
    """
    rules = rules or Rules()
    order = derive(0, "race").permutation(len(truth))
    if rival is None:
        return _whole(order, answer(order))
    found = np.empty(0, truth.dtype)
    for stop in _looks(len(order), rules):
        found = np.concatenate((found, answer(order[len(found) : stop])))
        seen = order[:stop]
        if stop < len(order) and _is_beaten(found, rival[seen], truth[seen], score, rules):
            return Ran(seen, found, whole=False)
    return _whole(order, found)


def _looks(rows: int, rules: Rules) -> Iterator[int]:
    """Yield after how many rows to look; the last time after all of them."""
    stop = rules.first
    while stop < rows:
        yield stop
        stop = max(stop + 1, round(stop * rules.growth))
    yield rows


def _is_beaten(found: Answers, rival: Answers, truth: Answers, score: Score, rules: Rules) -> bool:
    """Tell whether the rival is better in nearly all resamples of the rows, drawn in pairs."""
    if score(rival, truth) <= score(found, truth):
        return False
    rng = derive(len(truth), "resample")
    drawn = rng.integers(len(truth), size=(rules.samples, len(truth)))
    ahead = [score(rival[rows], truth[rows]) > score(found[rows], truth[rows]) for rows in drawn]
    return float(np.mean(ahead)) >= 1 - rules.doubt


def _whole(order: NDArray[np.int64], answers: Answers) -> Ran:
    """Put the answers back into the order of the rows."""
    found = np.empty_like(answers)
    found[order] = answers
    return Ran(np.arange(len(order)), found, whole=True)
