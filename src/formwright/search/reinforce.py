"""REINFORCE (Williams, 1992) as in the first neural architecture searches: a controller learns to write good designs."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from formwright.core.errors import IllegalInput
from formwright.core.records import Budget, History, Objective, Request, Trial
from formwright.search.controller import Controller, Vocabulary
from formwright.search.options import at_least, check
from formwright.search.parents import breeding
from formwright.search.scores import goals_of
from formwright.search.targets import targets
from formwright.search.unseen import Legal, anything, first_unseen, random_unseen
from formwright.space import Space

Floats = NDArray[np.float64]

TRIES = 50  # a controller that is sure of itself repeats itself; then its last design is mutated
OFTEN = 100  # how often it writes anew what breaks a constraint of the space


@dataclass(frozen=True, eq=False)
class Learner:
    """Hold a controller after some trials, the mean reward of late, and the moments that Adam keeps."""

    controller: Controller
    baseline: float
    moments: tuple[Floats, Floats]
    updates: int = 0


@dataclass(frozen=True)
class Reinforce:
    """Draw designs from an LSTM controller that each finished trial, in order, made likelier or less likely.

    The reward is the trial's target among the trials up to its own, so that the controller which proposed a design in
    a serial study is exactly the one that learns from it. Its advantage is what it exceeds the moving average of
    rewards by; `entropy` weighs the bonus for staying undecided.
    """

    space: Space
    objectives: tuple[Objective, ...]
    legal: Legal = anything
    learning_rate: float = 0.03
    entropy: float = 0.03
    decay: float = 0.8
    hidden: int = 32
    _last: list[tuple[tuple[Trial, ...], Learner]] = field(default_factory=list, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        goals_of(self.objectives)
        check(at_least(1, hidden=self.hidden))
        self._vocabulary  # refuse now, and not at the first proposal, what has no slots

    @cached_property
    def _vocabulary(self) -> Vocabulary:
        return Vocabulary.of(self.space.root)

    def ask(self, history: History, rng: Generator) -> Request:
        """Return what the controller writes."""
        if not self._vocabulary.size:
            return random_unseen(self.space, history, rng, self.legal).request(Budget.full())
        controller = self._learner(breeding(history)).controller
        proposal = first_unseen(
            self.space, history, rng, lambda: self._write(controller, rng), self.legal, TRIES
        )
        return proposal.request(Budget.full())

    def _write(self, controller: Controller, rng: Generator) -> Any:
        for _ in range(OFTEN):
            design = controller.draw(self._vocabulary, rng)
            if self.space.contains(design):
                return design
        raise IllegalInput(f"the controller wrote {OFTEN} designs that break a constraint of space {self.space.name!r}")

    def _learner(self, trials: tuple[Trial, ...]) -> Learner:
        """Return the learner after these trials, going on from the one before where it saw the first of them."""
        new = Controller.new(self._vocabulary.size, self.hidden)
        known, learner = self._last[0] if self._last else ((), Learner(new, 0.0, (np.zeros_like(new.vector),) * 2))
        if trials[: len(known)] != known:
            known, learner = (), Learner(new, 0.0, (np.zeros_like(new.vector),) * 2)
        for number in range(len(known), len(trials)):
            reward = float(targets(trials[: number + 1], self.objectives)[-1])
            learner = self._learn(learner, trials[number].request.design, reward)
        self._last[:] = [(trials, learner)]
        return learner

    def _learn(self, learner: Learner, design: Any, reward: float) -> Learner:
        controller = learner.controller
        tokens, possible = self._vocabulary.read(design)
        gradient = controller.gradient(tokens, possible, reward - learner.baseline, self.entropy)
        updates = learner.updates + 1
        first = 0.9 * learner.moments[0] + 0.1 * gradient
        second = 0.999 * learner.moments[1] + 0.001 * np.square(gradient)
        step = (first / (1 - 0.9**updates)) / (np.sqrt(second / (1 - 0.999**updates)) + 1e-8)
        vector = controller.vector + self.learning_rate * step
        baseline = self.decay * learner.baseline + (1.0 - self.decay) * reward
        return Learner(Controller(vector, controller.tokens, controller.hidden), baseline, (first, second), updates)
