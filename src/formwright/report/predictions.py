"""What the surrogate of BOSHNAS would have predicted of each trial, beside what came out."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from formwright.core.errors import FormwrightError
from formwright.core.records import History, Objective, Trial
from formwright.core.rng import derive
from formwright.report.evenly import evenly
from formwright.search.boshnas.searcher import OTHERS
from formwright.search.boshnas.surrogate import fit
from formwright.search.boshnas.terrain import Terrain
from formwright.search.fronts import longest
from formwright.search.listing import listing
from formwright.search.scores import goals_of
from formwright.search.unseen import anything
from formwright.space.space import Space
from formwright.tasks.metrics import spearman

FIRST, FEWEST, MOST = 12, 8, 30  # trials before the first guess, and how many guesses it takes and are made
LEARNT = 200  # of all trials, so that a page of very many is written in seconds
_DEVIATIONS = 1.6449  # of a normal distribution, to both sides: 90 % of it
_Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Guess:
    """What a trial was predicted to score, with the ends of the 90 % interval, and what it did score."""

    number: int
    mean: float
    low: float
    high: float
    outcome: float

    @property
    def holds(self) -> bool:
        """Tell whether the outcome lies within the interval."""
        return self.low <= self.outcome <= self.high


@dataclass(frozen=True)
class Predictions:
    """Guesses in the order of trials, or `hidden`: why there are none; `spearman` is their rank correlation.

    `learnt` trials out of `trials` were looked at.
    """

    guesses: tuple[Guess, ...] = ()
    spearman: float = 0.0
    learnt: int = 0
    trials: int = 0
    hidden: str = ""


def predictions(space: Space, finished: Sequence[Trial], objectives: Sequence[Objective]) -> Predictions:
    """Predict each of up to 30 trials by a surrogate that knows the trials asked for before it, and no others."""
    goals, trials = goals_of(objectives), longest(finished)
    if len(goals) > 1:
        return Predictions(hidden=f"The surrogate predicts one number; this study has {len(goals)} goals.")
    if len(trials) < FIRST + FEWEST:
        told = f"{len(trials)} finished trials are too few to judge predictions by; it takes {FIRST + FEWEST}."
        return Predictions(hidden=told)
    known = [trials[place] for place in evenly(len(trials), LEARNT)]
    scores = np.array([trial.observation.metrics[goals[0].name] for trial in known if trial.observation is not None])
    asked = _asked(scores)
    if len(asked) < FEWEST:
        return Predictions(hidden="Nearly all finished trials have the same score: there is nothing to predict.")
    try:
        terrain = Terrain.of(listing(space), anything)
    except FormwrightError as error:
        return Predictions(hidden=f"The designs of this space cannot be placed: {error}")
    guesses = _guesses(terrain, known, scores, asked)
    agreement = spearman([guess.mean for guess in guesses], [guess.outcome for guess in guesses])
    return Predictions(guesses, agreement, len(known), len(trials))


def _asked(scores: _Floats) -> list[int]:
    """Choose the places of the trials to predict: behind the first dozen, and behind the first score that differs."""
    different = np.flatnonzero(scores != scores[0])
    first = max(FIRST, different[0] + 1) if len(different) else len(scores)
    return [int(first) + place for place in evenly(len(scores) - int(first), MOST)]


def _guesses(terrain: Terrain, known: Sequence[Trial], scores: _Floats, asked: Sequence[int]) -> tuple[Guess, ...]:
    places = terrain.place([trial.request for trial in known])
    anywhere = terrain.candidates(History()).points
    guesses = []
    for place in asked:
        rng = derive(0, "predictions", place)
        centre, unit = scores[:place].mean(), scores[:place].std()
        standard = ((scores[:place] - centre) / unit).astype(np.float32)
        others = anywhere[rng.integers(len(anywhere), size=OTHERS)]
        found = fit(places[:place], standard, others, rng).predict(places[place : place + 1])
        low, high = found.interval(_DEVIATIONS)
        mean, least, most = (float(centre + unit * ends[0]) for ends in (found.mean, low, high))
        guesses.append(Guess(known[place].number, mean, least, most, float(scores[place])))
    return tuple(guesses)
