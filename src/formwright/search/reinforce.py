"""REINFORCE (Williams, 1992), as in the first neural architecture searches: a controller learns to write designs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from formwright.core.errors import IllegalInput
from formwright.core.records import Budget, History, Objective, Request, Trial
from formwright.search.controller import Controller
from formwright.search.options import at_least, check, share
from formwright.search.parents import breeding
from formwright.search.scores import goals_of
from formwright.search.slots import slots
from formwright.search.targets import targets
from formwright.search.unseen import Legal, anything, first_unseen, random_unseen
from formwright.search.vocabulary import Vocabulary
from formwright.space import Space

Floats = NDArray[np.float64]

TRIES = 50  # a controller that is sure of itself repeats itself; then its last design is mutated
_KEEP = (0.9, 0.999)  # of Adam's moments


@dataclass(frozen=True, eq=False)
class Learner:
    """Hold a controller after some updates, the mean reward of late, and the moments that Adam keeps."""

    controller: Controller
    baseline: float
    mean: Floats
    square: Floats
    updates: int = 0

    @classmethod
    def new(cls, controller: Controller) -> Learner:
        """Return a learner that has seen nothing."""
        return cls(controller, 0.0, np.zeros_like(controller.vector), np.zeros_like(controller.vector))


@dataclass(frozen=True)
class Reinforce:
    """Draw designs from an LSTM controller that each finished trial, in order, made likelier or less likely.

    The reward is the trial's target among the trials up to its own, so that in a serial study the controller that
    proposed a design is exactly the one that learns from it. What counts is by how much a reward exceeds the moving
    average of those before, of which `decay` remains after each; `entropy` weighs the bonus for staying undecided.
    """

    space: Space
    objectives: tuple[Objective, ...]
    legal: Legal = anything
    learning_rate: float = 0.02
    entropy: float = 0.03
    decay: float = 0.9
    hidden: int = 32

    def __post_init__(self) -> None:
        goals_of(self.objectives)
        check(
            share(learning_rate=self.learning_rate, entropy=self.entropy, decay=self.decay)
            + at_least(1, hidden=self.hidden)
        )
        tuple(slots(self.space.root))  # refuse now, and not at the first proposal, what has no slots

    def ask(self, history: History, rng: Generator) -> Request:
        """Return what the controller writes, or the nearest new design to it that was found."""
        if not self._vocabulary.size:
            return random_unseen(self.space, history, rng, self.legal).request(Budget.full())
        write = partial(self._write, self._learner(breeding(history)).controller, rng)
        return first_unseen(self.space, history, rng, write, self.legal, TRIES).request(Budget.full())

    def _write(self, controller: Controller, rng: Generator) -> Any:
        for _ in range(TRIES):
            design = controller.draw(self._vocabulary, rng)
            if self.space.contains(design):
                return design
        raise IllegalInput(f"the controller wrote {TRIES} designs that break a constraint of space {self.space.name!r}")

    def _learner(self, trials: tuple[Trial, ...]) -> Learner:
        """Return the learner after these trials; it goes on from the last one where that saw the first of them."""
        known, learner = self._last[0]
        if trials[: len(known)] != known:
            known, learner = (), self._untaught
        for number in range(len(known), len(trials)):
            reward = float(targets(trials[: number + 1], self.objectives)[-1])
            learner = self._taught(learner, trials[number].request.design, reward)
        self._last[0] = (trials, learner)
        return learner

    def _taught(self, learner: Learner, design: Any, reward: float) -> Learner:
        tokens, possible = self._vocabulary.read(design)
        slope = learner.controller.gradient(tokens, possible, reward - learner.baseline, self.entropy)
        updates = learner.updates + 1
        mean = _KEEP[0] * learner.mean + (1.0 - _KEEP[0]) * slope
        square = _KEEP[1] * learner.square + (1.0 - _KEEP[1]) * np.square(slope)
        spread = np.sqrt(square / (1.0 - _KEEP[1] ** updates)) + 1e-8
        vector = learner.controller.vector + self.learning_rate / (1.0 - _KEEP[0] ** updates) * mean / spread
        baseline = self.decay * learner.baseline + (1.0 - self.decay) * reward
        return Learner(replace(learner.controller, vector=vector), baseline, mean, square, updates)

    @cached_property
    def _vocabulary(self) -> Vocabulary:
        return Vocabulary.of(self.space.root)

    @cached_property
    def _untaught(self) -> Learner:
        return Learner.new(Controller.new(self._vocabulary.size, self.hidden))

    @cached_property
    def _last(self) -> list[tuple[tuple[Trial, ...], Learner]]:
        # the last replay, so that a serial study learns from each trial once; nothing depends on it but the time taken
        return [((), self._untaught)]
