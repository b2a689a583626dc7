"""LINAS (survey, X-C; Cummings et al., 2022): a front is evolved on predictions, and its best designs are evaluated."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from formwright.core.options import option
from formwright.core.protocols import Design
from formwright.core.records import History, Trial
from formwright.search.candidates import PredictorSearch, mutants, new_proposals
from formwright.search.evolution import tournament_winner
from formwright.search.predictors import Fitted, Predictor
from formwright.search.predictors.regressors import Ridge
from formwright.search.proposals import Proposal, anything, warming_up
from formwright.search.scores import Scores, best_first, hypervolume, longest, score

Floats = NDArray[np.float64]
Predict = Callable[[Sequence[Design]], Floats]  # gives the goals of designs, smaller being better
FEWEST = 3  # finished trials to learn from
BEYOND = 0.1  # distance of the reference point beyond the worst of a front, as a share of the front's extent


@dataclass(frozen=True)
class Linas(PredictorSearch):
    """Propose the design whose predicted goals add most to the hypervolume of the current front.

    After `initial` random designs every goal is predicted from the design's choices; NSGA-II's selection and moves
    evolve a `population` for some `generations` on the predictions alone, which costs no evaluation. With probability
    `explore` a random design is taken. The designs of a round of `batch` proposals are chosen by the same predictions:
    none waits for the evaluation of another, and each counts, as it is predicted, for those after it. With several
    workers a trial of an earlier round may end late; it is learned from as soon as it is finished.
    """

    population: int = option(40, "designs that evolve on predictions", least=2)
    generations: int = option(12, "generations on predictions for each proposal", least=1)
    explore: float = option(0.1, "probability of a random design", least=0, most=1)
    predictor: Predictor = option(Ridge(), "what predicts each goal (`formwright list predictors`)")
    batch: int = option(1, "proposals of a round, after which the predictors learn again", least=1)

    def _promising(self, history: History, rng: Generator) -> Iterator[Proposal]:
        known, proposed = self._known(history)
        if warming_up(history, self.initial) or len(known) < FEWEST or rng.random() < self.explore:
            return
        scores = score(known, self.objectives)
        predict = self._predictions(known, scores)
        candidates = new_proposals(self.space, self._evolved(known, scores, predict, rng), history)
        if candidates:
            gains = _gains(scores, predict([one.design for one in candidates]), predict(proposed))
            yield from (candidates[index] for index in np.argsort(-gains, kind="stable"))

    def _known(self, history: History) -> tuple[list[Trial], list[Design]]:
        """Return the trials that the round learns from, and the other designs that are proposed but not failed.

        A round begins at a fixed number of trials, and learns from those before it that are finished by now.
        """
        into_round = max(len(history.trials) - self.initial, 0) % self.batch
        known = [
            trial
            for trial in longest(history.finished)
            if trial.request.design is not None and trial.number < len(history.trials) - into_round
        ]
        numbers = {trial.number for trial in known}
        others = (trial for trial in history.trials if trial.number not in numbers and trial.state != "failed")
        return known, [trial.request.design for trial in others if trial.request.design is not None]

    def _predictions(self, known: Sequence[Trial], scores: Scores) -> Predict:
        points = self._points([trial.request.design for trial in known])
        model = _fitted(self.predictor, len(known), points.tobytes(), scores.values.tobytes())
        return lambda designs: model(self._points(designs))[0] if designs else scores.values[:0]

    def _evolved(self, known: Sequence[Trial], scores: Scores, predict: Predict, rng: Generator) -> list[Design]:
        """Evolve designs on predictions, from the best that were evaluated and as many random ones."""
        best = [known[index].request.design for index in best_first(scores, self.population // 2)]
        designs = best + [self.space.sample(rng) for _ in range(self.population - len(best))]
        for _ in range(self.generations):
            pool = designs + [self._child(designs, rng) for _ in range(self.population)]
            order = best_first(Scores(predict(pool), self._violations(pool)), self.population)
            designs = [pool[index] for index in order]
        return designs

    def _violations(self, designs: Sequence[Design]) -> Floats:
        if self.legal is anything:
            return np.zeros(len(designs))
        return np.array([0.0 if self.legal(self.space.card(design)) else 1.0 for design in designs])

    def _child(self, designs: Sequence[Design], rng: Generator) -> Design:
        first, second = (tournament_winner(designs, rng) for _ in range(2))
        child = self.space.crossover(first, second, rng)
        return next(mutants(self.space, [child], 1, rng), child)

    def _points(self, designs: Sequence[Design]) -> Floats:
        return np.stack([self.space.encode(design) for design in designs])


@lru_cache(maxsize=16)
def _fitted(predictor: Predictor, rows: int, points: bytes, values: bytes) -> Fitted:
    """Fit a predictor once for all proposals of a round."""
    return predictor.fit(np.frombuffer(points).reshape(rows, -1), np.frombuffer(values).reshape(rows, -1))


def _gains(scores: Scores, predicted: Floats, proposed: Floats | None = None) -> Floats:
    """Return the gain in hypervolume of each predicted row over the legal observations, with goals scaled.

    The predictions of designs that were `proposed` already count as observations.
    """
    known = scores.values[scores.violations == 0.0] if (scores.violations == 0.0).any() else scores.values
    low, extent = known.min(axis=0), np.maximum(np.ptp(known, axis=0), 1e-12)
    seen = known if proposed is None else np.vstack((known, proposed))
    observed, rows = (seen - low) / extent, (predicted - low) / extent
    directions = ["min"] * known.shape[1]
    reference = np.full(known.shape[1], 1 + BEYOND)
    before = hypervolume(observed, reference, directions)  # type: ignore[arg-type]
    added = [hypervolume(np.vstack((observed, row)), reference, directions) - before for row in rows]  # type: ignore[arg-type]
    gains: Floats = np.array(added) - 1e-9 * rows.sum(axis=1)  # what adds nothing is ordered by how near it comes
    return gains
