"""Races: a model answers rows until the answers of a rival are significantly better."""

import math
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formwright.core.rng import derive

Answers = NDArray[Any]
Answer = Callable[[Sequence[int], NDArray[np.int64]], Sequence[Answers]]  # of some of the models to the same rows
Score = Callable[[Answers, Answers], float]  # of answers and what is right, larger being better
_SPARE = 2  # swaps drawn, in units of `1 / doubt`


@dataclass(frozen=True)
class RaceRules:
    """Options of a race: rows before the first comparison, their growth, and the significance level.

    At most a share `doubt` of the models that are as good as their rival are stopped, over all comparisons of a race.
    """

    first: int = 64
    growth: float = 1.5
    doubt: float = 0.01


@dataclass(frozen=True, eq=False)
class RaceResult:
    """The rows that a model answered and its answers; `whole` where these are all rows."""

    rows: NDArray[np.int64]
    answers: Answers
    whole: bool


def races(
    answer: Answer, truth: Answers, rivals: Sequence[Answers | None], score: Score, rules: RaceRules | None = None
) -> list[RaceResult]:
    """Let models answer rows in a fixed random order, each until its rival is significantly better.

    There is one for each of the `rivals`; without a rival a model answers all rows. Those that are still in the race
    are asked for the same rows together.
    """
    running = dict(enumerate(_race(truth, rival, score, rules or RaceRules()) for rival in rivals))
    wanted = {place: next(one) for place, one in running.items()}
    ended: dict[int, RaceResult] = {}
    while wanted:
        rows = next(iter(wanted.values()))
        places = [place for place, others in wanted.items() if np.array_equal(rows, others)]
        for place, found in zip(places, answer(places, rows), strict=True):
            try:
                wanted[place] = running[place].send(found)
            except StopIteration as end:
                ended[place] = end.value
                del wanted[place]
    return [ended[place] for place in running]


def _race(
    truth: Answers, rival: Answers | None, score: Score, rules: RaceRules
) -> Generator[NDArray[np.int64], Answers, RaceResult]:
    """Yield the rows that a model is to answer next, and take its answers."""
    order = derive(0, "race").permutation(len(truth))
    if rival is None:
        return _whole(order, (yield order))
    found = np.empty(0, truth.dtype)
    *looks, last = _looks(len(order), rules)
    for stop in looks:
        found = np.concatenate((found, (yield order[len(found) : stop])))
        seen = order[:stop]
        # Bonferroni: the doubt of a race is divided among its comparisons
        if _is_beaten(found, rival[seen], truth[seen], score, rules.doubt / len(looks)):
            return RaceResult(seen, found, whole=False)
    return _whole(order, np.concatenate((found, (yield order[len(found) : last]))))


def _looks(rows: int, rules: RaceRules) -> list[int]:
    """List the numbers of rows after which to compare; the last one is all rows."""
    stops, stop = [], rules.first
    while stop < rows:
        stops.append(stop)
        stop = max(stop + 1, round(stop * rules.growth))
    return [*stops, rows]


def _is_beaten(found: Answers, rival: Answers, truth: Answers, score: Score, doubt: float) -> bool:
    """Return whether the rival's lead is significant at the level `doubt`.

    This is a paired randomisation test: under the null hypothesis the two answers to a row can be swapped. It is valid
    for every metric and any number of rows.
    """
    lead = score(rival, truth) - score(found, truth)
    if not lead > 0 or not doubt:
        return False
    swaps = math.ceil(_SPARE / doubt)
    allowed = math.floor(doubt * (swaps + 1)) - 1  # the observed lead counts as one of them
    rng = derive(len(truth), "swap")
    for _ in range(swaps):
        swapped = rng.random(len(truth)) < 0.5
        mine, other = np.where(swapped, rival, found), np.where(swapped, found, rival)
        allowed -= score(other, truth) - score(mine, truth) >= lead
        if allowed < 0:  # most races are close, and few swaps suffice to see that
            return False
    return True


def _whole(order: NDArray[np.int64], answers: Answers) -> RaceResult:
    """Restore the order of the rows."""
    found = np.empty_like(answers)
    found[order] = answers
    return RaceResult(np.arange(len(order)), found, whole=True)
