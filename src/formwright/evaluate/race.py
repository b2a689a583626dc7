"""Judge a model a few rows at a time, and stop once a rival is surely better: most models of a search are worse."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formwright.core.rng import derive

Answers = NDArray[Any]
Answer = Callable[[NDArray[np.int64]], Answers]  # gives a model's answers to some rows
Score = Callable[[Answers, Answers], float]  # of answers and what is right, larger being better
_SPARE = 2  # how many swaps in `1 / doubt` are drawn, so that one of them may do as well


@dataclass(frozen=True)
class Rules:
    """Say how a race is run: rows before the first look, how fast they grow, and when a look decides.

    At most a share of `doubt` of the models that are as good as their rival are stopped, over all looks of their race.
    """

    first: int = 64
    growth: float = 1.5
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
    *looks, last = _looks(len(order), rules)
    for stop in looks:
        found = np.concatenate((found, answer(order[len(found) : stop])))
        seen = order[:stop]
        # every look may err: the doubt of a race is divided among its looks
        if _is_beaten(found, rival[seen], truth[seen], score, rules.doubt / len(looks)):
            return Ran(seen, found, whole=False)
    return _whole(order, np.concatenate((found, answer(order[len(found) : last]))))


def _looks(rows: int, rules: Rules) -> list[int]:
    """List after how many rows to look; the last time after all of them."""
    stops, stop = [], rules.first
    while stop < rows:
        stops.append(stop)
        stop = max(stop + 1, round(stop * rules.growth))
    return [*stops, rows]


def _is_beaten(found: Answers, rival: Answers, truth: Answers, score: Score, doubt: float) -> bool:
    """Tell whether the rival's lead would be as large by chance in at most a share of `doubt` of cases.

    Of two models that are equally good, either might have given the one answer or the other to a row. So answers are
    swapped row by row at random, which holds for every metric and for however few rows (a paired randomisation test).
    """
    lead = score(rival, truth) - score(found, truth)
    if not lead > 0 or not doubt:
        return False
    swaps = math.ceil(_SPARE / doubt)
    borne = math.floor(doubt * (swaps + 1)) - 1  # the lead that was found counts as one of them
    rng = derive(len(truth), "swap")
    for _ in range(swaps):
        swapped = rng.random(len(truth)) < 0.5
        mine, other = np.where(swapped, rival, found), np.where(swapped, found, rival)
        borne -= score(other, truth) - score(mine, truth) >= lead
        if borne < 0:  # most races are close, and few swaps show it
            return False
    return True


def _whole(order: NDArray[np.int64], answers: Answers) -> Ran:
    """Put the answers back into the order of the rows."""
    found = np.empty_like(answers)
    found[order] = answers
    return Ran(np.arange(len(order)), found, whole=True)
