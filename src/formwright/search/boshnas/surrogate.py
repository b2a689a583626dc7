"""The surrogate of BOSHNAS: what a design will score, how noisy that is, and how little is known about it.

Three networks (section 3.4.2 of the FlexiBERT paper): a natural-parameter network for the mean and the aleatoric
uncertainty, a teacher with Monte-Carlo dropout whose spread is the epistemic uncertainty, and a student that predicts
that spread, so that it has derivatives.

They differ from the authors' in what the paper does not say: each is fitted anew, on all points at once; weights have a
prior, without which a hundred points are learnt by heart; and the student also learns at designs that nobody
evaluated, because that is where it is asked.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log

import numpy as np
from numpy.random import Generator

from formwright.search.boshnas.jets import Jet
from formwright.search.boshnas.natural_network import NaturalNetwork
from formwright.search.boshnas.parameters import Descent, Floats
from formwright.search.boshnas.perceptron import Masks, Perceptron

# Chosen on made-up scores of FlexiBERT designs, for the rank correlation and likelihood of unseen designs.
NATURAL_WIDTHS = (32,)
TEACHER_WIDTHS = STUDENT_WIDTHS = (32, 32)
DESCENT = Descent(steps=100, rate=0.02)
SPREAD, LEAST_SIGMA = 0.15, 0.05
NATURAL_PRIOR, PLAIN_PRIOR, TEACHER_PRIOR, STUDENT_PRIOR = 1.0, 0.3, 0.06, 0.03
DROPOUT, SAMPLES = 0.3, 64


@dataclass(frozen=True, eq=False)
class Prediction:
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

    def predict(self, x: Floats) -> Prediction:
        """Predict the scores of points (points, coordinates)."""
        epistemic = np.exp(self.student(x)[:, 0])
        if isinstance(self.mean, Perceptron):
            return Prediction(self.mean(x)[:, 0], np.zeros_like(epistemic), epistemic)
        found = self.mean(x)
        return Prediction(found.mean[:, 0], np.sqrt(found.variance[:, 0]), epistemic)

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

    `others` are points that nobody evaluated, at which the student learns the teacher's uncertainty, too.
    """
    mean = _natural(x, y, rng) if heteroscedastic else _plain(x, y, rng)
    teacher = _teacher(x, y, rng)
    everywhere = np.concatenate([x, others])
    return Surrogate(mean, teacher, _student(everywhere, spread(teacher, everywhere, rng), rng))


def spread(teacher: Perceptron, x: Floats, rng: Generator, samples: int = SAMPLES) -> Floats:
    """Return the standard deviation of the teacher's predictions under dropout, each sample with the same units."""
    drawn = teacher(x, _masks((samples, 1), TEACHER_WIDTHS, rng))
    return np.asarray(drawn[..., 0].std(axis=0))


def _natural(x: Floats, y: Floats, rng: Generator) -> NaturalNetwork:
    network = NaturalNetwork.start((x.shape[1], *NATURAL_WIDTHS, 1), SPREAD, LEAST_SIGMA**2, rng)
    network.fit(x, y, DESCENT, NATURAL_PRIOR)
    return network


def _plain(x: Floats, y: Floats, rng: Generator) -> Perceptron:
    network = Perceptron.start((x.shape[1], *NATURAL_WIDTHS, 1), rng)
    network.fit(x, lambda output: (output - y[:, None]) / len(x), DESCENT, PLAIN_PRIOR)
    return network


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
