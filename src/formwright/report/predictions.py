"""What the surrogate of BOSHNAS would have predicted for each trial, compared with the measured score."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from formwright.core.errors import FormwrightError
from formwright.core.records import History, Objective, Trial
from formwright.core.rng import derive
from formwright.report.figures import evenly_spaced, squarable
from formwright.search.boshnas import OTHERS, ScaledListing, fit
from formwright.search.listing import listing
from formwright.search.proposals import anything
from formwright.search.scores import goals_of, longest
from formwright.space.space import Space
from formwright.tasks.metrics import spearman

FIRST, FEWEST, MOST = 12, 8, 30  # trials before the first guess; fewest and most guesses
MOST_LEARNT = 200  # trials used, to write the page of a long study in seconds
_DEVIATIONS = 1.6449  # of a normal distribution, to both sides: 90 % of it
_Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Guess:
    """The predicted score of a trial with its 90 % interval, and the measured score."""

    number: int
    mean: float
    low: float
    high: float
    outcome: float

    @property
    def holds(self) -> bool:
        return self.low <= self.outcome <= self.high

    def times(self, unit: float) -> "Guess":
        """Return the guess in another unit."""
        values = (unit * one for one in (self.mean, self.low, self.high, self.outcome))
        return self if unit == 1.0 else Guess(self.number, *values)


@dataclass(frozen=True)
class Predictions:
    """Guesses in the order of trials, or in `hidden` why there are none; `spearman` is their rank correlation.

    `learnt` of `trials` trials were used.
    """

    guesses: tuple[Guess, ...] = ()
    spearman: float = 0.0
    learnt: int = 0
    trials: int = 0
    hidden: str = ""


def predictions(space: Space, finished: Sequence[Trial], objectives: Sequence[Objective]) -> Predictions:
    """Predict up to 30 trials, each by a surrogate that has seen only the trials before it."""
    goals, trials = goals_of(objectives), longest(finished)
    if len(goals) > 1:
        return Predictions(hidden=f"The surrogate predicts one number; this study has {len(goals)} goals.")
    if len(trials) < FIRST + FEWEST:
        return Predictions(hidden=f"Predictions need {FIRST + FEWEST} finished trials; there are {len(trials)}.")
    known = [trials[place] for place in evenly_spaced(len(trials), MOST_LEARNT)]
    seen = [trial.observation.metrics[goals[0].name] for trial in known if trial.observation is not None]
    scores, unit = squarable(seen)
    asked = _asked(scores)
    if len(asked) < FEWEST:
        return Predictions(hidden="Nearly all finished trials have the same score: there is nothing to predict.")
    try:
        terrain = ScaledListing.of(listing(space), anything)
    except FormwrightError as error:
        return Predictions(hidden=f"The designs of this space cannot be placed: {error}")
    guesses = tuple(guess.times(unit) for guess in _guesses(terrain, known, scores, asked))
    agreement = spearman([guess.mean for guess in guesses], [guess.outcome for guess in guesses])
    return Predictions(guesses, agreement, len(known), len(trials))


def _asked(scores: _Floats) -> list[int]:
    """Choose the trials to predict: after the first dozen, and after the first score that differs."""
    different = np.flatnonzero(scores != scores[0])
    first = max(FIRST, different[0] + 1) if len(different) else len(scores)
    return [int(first) + place for place in evenly_spaced(len(scores) - int(first), MOST)]


def _guesses(
    terrain: ScaledListing, known: Sequence[Trial], scores: _Floats, asked: Sequence[int]
) -> tuple[Guess, ...]:
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
