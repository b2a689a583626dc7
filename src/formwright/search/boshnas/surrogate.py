"""The surrogate of BOSHNAS: predicted score, aleatoric and epistemic uncertainty.

Three networks (section 3.4.2 of the FlexiBERT paper): a natural-parameter network for the mean and the aleatoric
uncertainty, a teacher with Monte-Carlo dropout whose spread is the epistemic uncertainty, and a student that predicts
that spread, so that it has derivatives.

They differ from the authors' in what the paper does not say: each is refitted for every proposal, on all points at
once; weights have a prior, without which a hundred points are memorised; and the student also learns at designs that
were not evaluated, because it is queried there.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log

import numpy as np
from numpy.random import Generator

from formwright.search.boshnas.natural_network import NaturalNetwork
from formwright.search.boshnas.networks import Descent, Floats, Jet, Masks, Perceptron

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
        """Return the mean less and plus so many standard deviations of both uncertainties together."""
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
