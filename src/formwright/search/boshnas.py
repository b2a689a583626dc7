"""BOSHNAS (Tuli et al., 2022): climb the upper confidence bound of a heteroscedastic surrogate.

The surrogate predicts the score, its aleatoric and its epistemic uncertainty by three networks (section 3.4.2 of the
FlexiBERT paper): a natural-parameter network for the mean and the aleatoric uncertainty, a teacher with Monte-Carlo
dropout whose spread is the epistemic uncertainty, and a student that predicts that spread, so that it has derivatives.
They differ from the authors' in what the paper does not say: each is refitted for every proposal, on all points at
once; weights have a prior, without which a hundred points are memorised; and the student also learns at designs that
were not evaluated, because it is queried there.

The bound is climbed by GOBI (gradient-based optimisation using backpropagation to the input; Tuli et al., 2021) with
second-order steps. AdaHessian (Yao et al., 2021) divides the mean of the gradients by the root mean square of the
Hessian's diagonal, which it estimates from random vectors; here it is exact. Many starts ascend in parallel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import log
from typing import Literal

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from formwright.core.errors import IllegalInput
from formwright.core.options import option
from formwright.core.records import History, Request
from formwright.search.boshnas_networks import Descent, Floats, Jet, Masks, NaturalNetwork, Perceptron
from formwright.search.candidates import (
    Candidates,
    Rows,
    SurrogateSearch,
    TrainingData,
    legal_rows,
    points,
    ranked,
    unseen,
)
from formwright.search.listing import Coordinates, Listing
from formwright.search.proposals import Legal, Proposal

# Chosen on synthetic scores of FlexiBERT designs, for the rank correlation and likelihood of unseen designs.
NATURAL_WIDTHS = (32,)
TEACHER_WIDTHS = STUDENT_WIDTHS = (32, 32)
DESCENT = Descent(steps=100, rate=0.02)
SPREAD, LEAST_SIGMA = 0.15, 0.05
NATURAL_PRIOR, PLAIN_PRIOR, TEACHER_PRIOR, STUDENT_PRIOR = 1.0, 0.3, 0.06, 0.03
DROPOUT, SAMPLES = 0.3, 64


@dataclass(frozen=True, eq=False)
class ScorePrediction:
    """Hold for each point the mean score, the aleatoric and the epistemic uncertainty, as standard deviations."""

    mean: Floats
    aleatoric: Floats
    epistemic: Floats

    def interval(self, deviations: float) -> tuple[Floats, Floats]:
        """Return the mean minus and plus a number of standard deviations of both uncertainties together."""
        reach = deviations * np.hypot(self.aleatoric, self.epistemic)
        return self.mean - reach, self.mean + reach


@dataclass(frozen=True, eq=False)
class Surrogate:
    """Hold the fitted networks; the mean's is a natural-parameter network, or a plain one that knows no noise."""

    mean: NaturalNetwork | Perceptron
    teacher: Perceptron
    student: Perceptron

    def predict(self, x: Floats) -> ScorePrediction:
        epistemic = np.exp(self.student(x)[:, 0])
        if isinstance(self.mean, Perceptron):
            return ScorePrediction(self.mean(x)[:, 0], np.zeros_like(epistemic), epistemic)
        found = self.mean(x)
        return ScorePrediction(found.mean[:, 0], np.sqrt(found.variance[:, 0]), epistemic)

    def jets(self, x: Floats) -> tuple[Jet, Jet, Jet]:
        """Return mean, aleatoric and epistemic uncertainty of points, each with its derivatives."""
        point = Jet.at(x)
        epistemic = self.student.jet(point).exp()
        if isinstance(self.mean, Perceptron):
            return self.mean.jet(point), epistemic.scale(0.0), epistemic
        mean, variance = self.mean.jet(point)
        return mean, variance.root(), epistemic


def fit(x: Floats, y: Floats, others: Floats, rng: Generator, heteroscedastic: bool = True) -> Surrogate:
    """Fit a surrogate to standardised scores y (points,) at points x (points, coordinates).

    `others` are points that were not evaluated, at which the student learns the teacher's uncertainty, too.
    """
    widths = (x.shape[1], *NATURAL_WIDTHS, 1)
    mean: NaturalNetwork | Perceptron
    if heteroscedastic:
        mean = NaturalNetwork.start(widths, SPREAD, LEAST_SIGMA**2, rng)
        mean.fit(x, y, DESCENT, NATURAL_PRIOR)
    else:
        mean = Perceptron.start(widths, rng)
        mean.fit(x, lambda output: (output - y[:, None]) / len(x), DESCENT, PLAIN_PRIOR)
    teacher = _teacher(x, y, rng)
    everywhere = np.concatenate([x, others])
    return Surrogate(mean, teacher, _student(everywhere, spread(teacher, everywhere, rng), rng))


def spread(teacher: Perceptron, x: Floats, rng: Generator, samples: int = SAMPLES) -> Floats:
    """Return the standard deviation of the teacher's predictions under dropout, each sample with the same units."""
    drawn = teacher(x, _masks((samples, 1), TEACHER_WIDTHS, rng))
    return np.asarray(drawn[..., 0].std(axis=0))


def _teacher(x: Floats, y: Floats, rng: Generator) -> Perceptron:
    network = Perceptron.start((x.shape[1], *TEACHER_WIDTHS, 1), rng)
    network.fit(
        x,
        lambda output: (output - y[:, None]) / len(x),
        DESCENT,
        TEACHER_PRIOR,
        lambda: _masks((len(x),), TEACHER_WIDTHS, rng),
    )
    return network


def _student(x: Floats, xi: Floats, rng: Generator) -> Perceptron:
    """Fit a network whose exponential is xi, so that it is positive everywhere."""
    network = Perceptron.start((x.shape[1], *STUDENT_WIDTHS, 1), rng)
    typical = max(float(xi.mean()), 1e-6)
    network.weights[-1][:] *= 0.1
    network.biases[-1][:] = log(typical)

    def slope_of(output: Floats) -> Floats:
        predicted = np.exp(output) / typical
        return predicted * (predicted - xi[:, None] / typical) / len(x)

    network.fit(x, slope_of, DESCENT, STUDENT_PRIOR)
    return network


def _masks(leading: tuple[int, ...], widths: tuple[int, ...], rng: Generator) -> Masks:
    kept = [rng.random((*leading, width), dtype=np.float32) >= DROPOUT for width in widths]
    return [mask.astype(np.float32) / (1 - DROPOUT) for mask in kept]


FIRST_MOMENT, SECOND_MOMENT, EPSILON = 0.5, 0.9, 1e-8  # gradients are exact here, so little averaging is needed
SECOND_ORDER_RATE, FIRST_ORDER_RATE = 0.5, 0.1  # the first in units of Newton's step, the second of the points


@dataclass(frozen=True)
class Ascent:
    """Options of the ascent: second or first order, the maximum number of steps, and when a point has converged.

    It has converged when no coordinate moves by more than `still` of the box's side.
    """

    second_order: bool = True
    most_steps: int = 60
    still: float = 1e-3

    def rate(self, step: int) -> float:
        """Return the length of a step; first-order steps shrink so that they converge."""
        return SECOND_ORDER_RATE if self.second_order else FIRST_ORDER_RATE * (1 - step / self.most_steps)


def ascend(bound: Callable[[Floats], Jet], starts: Floats, low: Floats, high: Floats, ascent: Ascent) -> list[Floats]:
    """Climb `bound` from each start (points, coordinates) within the box from low to high, until all have converged.

    Return where the points were after 1, 2, 4, 8, ... steps, and at last where they ended.
    """
    x, stages = starts, []
    first, second = np.zeros_like(x), np.zeros_like(x)
    for step in range(1, ascent.most_steps + 1):
        jet = bound(x)
        gradient = jet.slope[..., 0]
        steepness = jet.curvature[..., 0] if ascent.second_order else gradient
        first += (1 - FIRST_MOMENT) * (gradient - first)
        second += (1 - SECOND_MOMENT) * (steepness**2 - second)
        direction = first / (1 - FIRST_MOMENT**step)
        size = np.sqrt(second / (1 - SECOND_MOMENT**step)) + EPSILON
        x, before = np.clip(x + ascent.rate(step) * direction / size, low, high), x
        if np.all(np.abs(x - before) <= ascent.still * (high - low)):
            break
        if step & (step - 1) == 0:
            stages.append(x)
    return [*stages, x]


def nearest(points: Floats, targets: Floats, number: int = 1) -> NDArray[np.intp]:
    """Return the rows of the `number` points nearest to each target, (targets, number), unordered."""
    # squared distance, up to a constant
    distance = (points**2).sum(axis=1) - 2 * targets @ points.T
    if number >= len(points):
        return np.tile(np.arange(len(points)), (len(targets), 1))
    return np.argpartition(distance, number - 1, axis=1)[:, :number]


RESTARTS = 32
NEIGHBOURS = 100


@dataclass(frozen=True, eq=False)
class UpperBound:
    """Add to the predicted mean `k1` times the aleatoric and `k2` times the epistemic uncertainty (Eq. 1)."""

    surrogate: Surrogate
    k1: float
    k2: float

    def __call__(self, x: Floats) -> Floats:
        found = self.surrogate.predict(x)
        return found.mean + self._weighted(found)

    def uncertainty(self, x: Floats) -> Floats:
        return self._weighted(self.surrogate.predict(x))

    def jet(self, x: Floats) -> Jet:
        mean, aleatoric, epistemic = self.surrogate.jets(x)
        return mean + aleatoric.scale(self.k1) + epistemic.scale(self.k2)

    def _weighted(self, found: ScorePrediction) -> Floats:
        return self.k1 * found.aleatoric + self.k2 * found.epistemic


def highest(bound: UpperBound, points: Floats, rng: Generator) -> list[int]:
    return ranked(bound(points).astype(np.float64), rng)


def most_uncertain(bound: UpperBound, points: Floats, rng: Generator) -> list[int]:
    return ranked(bound.uncertainty(points).astype(np.float64), rng)


def climb(bound: UpperBound, points: Floats, ascent: Ascent, rng: Generator) -> list[int]:
    """Return rows of points that lie near ascents from random points, the highest bound first.

    The maximum of the bound is hardly ever at a design. So the candidates are the points nearest to a stage of an
    ascent, and the hundred nearest to its end.
    """
    *stages, end = _ascents(bound, points, ascent, rng)
    found = [nearest(points, end, NEIGHBOURS), *(nearest(points, stage) for stage in stages)]
    rows = np.unique(np.concatenate([rows.ravel() for rows in found]))
    return [int(rows[index]) for index in highest(bound, points[rows], rng)]


def climb_to_nearest(bound: UpperBound, points: Floats, ascent: Ascent, rng: Generator) -> list[int]:
    """Return the row of the point that is nearest to the end of each ascent, the highest end first."""
    end = _ascents(bound, points, ascent, rng)[-1]
    return [int(row) for row in nearest(points, end[highest(bound, end, rng)]).ravel()]


def _ascents(bound: UpperBound, points: Floats, ascent: Ascent, rng: Generator) -> list[Floats]:
    starts = points[rng.integers(len(points), size=RESTARTS)]
    return ascend(bound.jet, starts, points.min(axis=0), points.max(axis=0), ascent)


@dataclass(frozen=True, eq=False)
class ScaledListing:
    """Hold the rows of a listing that are within the limits, each card once, and the scale of the points.

    Points are shifted and divided by one number, so that coordinates vary by about 1 and distances keep their order.
    """

    listed: Listing
    rows: Rows
    centre: NDArray[np.float64]
    deviation: float

    @classmethod
    def of(cls, listed: Listing, legal: Legal) -> ScaledListing:
        centre = listed.points.mean(axis=0)
        deviation = float(np.sqrt(np.mean((listed.points - centre) ** 2)))
        return cls(listed, legal_rows(listed, legal), centre, deviation or 1.0)

    def place(self, asked: Sequence[Request | Proposal]) -> Floats:
        return self.scaled(points(self.listed.points_of, asked))

    def candidates(self, history: History, more: Sequence[Proposal] = ()) -> Candidates:
        found = unseen(self.listed, history, self.rows, more)
        return replace(found, points=self.scaled(found.points))

    def scaled(self, places: Floats) -> Floats:
        return ((places - self.centre) / self.deviation).astype(np.float32)


Acquire = Literal["gobi", "gobi-nearest", "exhaustive"]
FEWEST = 3  # finished trials to learn from
OTHERS = 256  # unevaluated designs that the student is fitted to as well


@dataclass(frozen=True)
class Boshnas(SurrogateSearch):
    """Propose the design with the highest mean + `k1` aleatoric + `k2` epistemic uncertainty.

    The first `initial` designs are random. With probability `alpha` the most uncertain design is taken instead, with
    probability `beta` a random one. The paper stops where the best score changes by less than 1e-4 for five trials:
    `--patience 5 --tolerance 1e-4` of a study. Pending trials are learnt from with their predicted scores, so that
    several workers do not try the same.

    `acquire` says how the highest bound is looked for. `gobi` ascends it from random designs by second-order steps (by
    gradients alone without `second_order`) and takes the best of the designs near the way and near its end.
    `gobi-nearest` takes the design nearest to the highest end, as the paper does; few places between designs are
    designs, so that one is often much lower. `exhaustive` looks at every listed design. Without `heteroscedastic` a
    plain network predicts the mean and no noise.

    `transformer2vec` places designs by the edit distance of their graphs. Scores that change with choices which this
    distance hardly sees are not found sooner than by random search (two of four made-up problems over one-hot
    vectors); `one-hot` coordinates find them. Designs whose cards are not Formwright's own have one-hot coordinates.
    """

    k1: float = option(0.5, "weight of the aleatoric uncertainty", least=0, most=1e6)
    k2: float = option(0.5, "weight of the epistemic uncertainty", least=0, most=1e6)
    alpha: float = option(0.1, "probability of proposing the most uncertain design", least=0, most=1)
    beta: float = option(0.1, "probability of proposing a random design", least=0, most=1)
    second_order: bool = option(True, "ascend by second-order steps instead of gradients alone")
    heteroscedastic: bool = option(True, "predict the noise of a score too")
    coordinates: Coordinates = option("transformer2vec", "how designs are encoded")
    acquire: Acquire = option("gobi", "how the highest bound is looked for")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.alpha + self.beta > 1:
            raise IllegalInput(f"alpha + beta is {self.alpha + self.beta:g}; it must be at most 1")

    def _promising(self, history: History, rng: Generator) -> Iterator[Proposal]:
        draw = rng.random()  # drawn first, whether it is used or not
        if draw >= 1 - self.beta or (seen := self.look(history, rng)) is None or len(seen.scores) < FEWEST:
            return
        places = self._terrain.scaled(seen.candidates.points)
        bound = UpperBound(self._fit(seen, places, rng), self.k1, self.k2)
        order = most_uncertain if draw >= 1 - self.alpha - self.beta else self._highest
        yield from map(seen.candidates.proposal, order(bound, places, rng))

    def _highest(self, bound: UpperBound, points: Floats, rng: Generator) -> list[int]:
        ascent = Ascent(self.second_order)
        match self.acquire:
            case "gobi":
                return climb(bound, points, ascent, rng)
            case "gobi-nearest":
                return climb_to_nearest(bound, points, ascent, rng)
            case _:
                return highest(bound, points, rng)

    def _fit(self, seen: TrainingData, places: Floats, rng: Generator) -> Surrogate:
        x, y = self._terrain.scaled(seen.points), seen.scores.astype(np.float32)
        others = places[rng.integers(len(places), size=OTHERS)]
        found = fit(x, y, others, rng, self.heteroscedastic)
        if not len(seen.pending):
            return found
        more = self._terrain.scaled(seen.pending)
        expected = found.predict(more).mean
        return fit(np.concatenate([x, more]), np.concatenate([y, expected]), others, rng, self.heteroscedastic)

    @cached_property
    def _terrain(self) -> ScaledListing:
        return ScaledListing.of(self._listed, self.legal)
