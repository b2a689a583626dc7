"""REINFORCE (Williams, 1992): an LSTM controller learns to sample designs, slot by slot."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from formwright.core.errors import IllegalInput
from formwright.core.options import option
from formwright.core.records import Budget, History, Request, Trial
from formwright.core.rng import derive
from formwright.search.categorical import Slot, compose, decompose, slots
from formwright.search.proposals import breeding, first_unseen, random_unseen
from formwright.search.scores import targets
from formwright.search.searchers import CheckedSearcher
from formwright.space import Combinator

Tokens = NDArray[np.intp]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Vocabulary:
    """Number the options of all slots of a part: each option of each slot is a token."""

    part: Combinator[Any]
    first: dict[str, int]
    size: int

    @classmethod
    def of(cls, part: Combinator[Any]) -> Vocabulary:
        first, size = {}, 0
        for slot in slots(part):
            first[slot.name] = size
            size += slot.options
        return cls(part, first, size)

    def read(self, design: Any) -> tuple[Tokens, Mask]:
        """Return the tokens of a design, and for each of them the mask of possible tokens."""
        taken = list(decompose(self.part, design))
        rows = [(self.first[slot.name], slot.options, option) for slot, option in taken]
        firsts, options, chosen = np.array(rows, dtype=np.intp).T
        place = np.arange(self.size) - firsts[:, None]  # (steps, tokens)
        return firsts + chosen, (place >= 0) & (place < options[:, None])


Floats = NDArray[np.float64]
SPREAD = 0.1  # of the first weights: nearly every option is as likely as any other


@dataclass(frozen=True, eq=False)
class Controller:
    """Hold the weights of an LSTM over tokens, all in one vector.

    `inputs` has a row for each token and a last one for the start, `recurrent` maps the state to the four gates, and
    `heads` and `biases` map the state to the logits of all tokens.
    """

    vector: Floats
    tokens: int
    hidden: int

    @classmethod
    def new(cls, tokens: int, hidden: int) -> Controller:
        size = (tokens + 1 + hidden) * 4 * hidden + tokens * (hidden + 1)
        controller = cls(derive(0, "controller", tokens, hidden).normal(0.0, SPREAD, size), tokens, hidden)
        controller.inputs[:, hidden : 2 * hidden] += 1.0  # forget gates start open
        return controller

    @property
    def inputs(self) -> Floats:
        """Return what each token adds to the gates: (tokens + 1, 4 * hidden)."""
        return self.vector[: (self.tokens + 1) * 4 * self.hidden].reshape(-1, 4 * self.hidden)

    @property
    def recurrent(self) -> Floats:
        """Return what the state adds to the gates: (hidden, 4 * hidden)."""
        start = (self.tokens + 1) * 4 * self.hidden
        return self.vector[start : start + 4 * self.hidden**2].reshape(self.hidden, -1)

    @property
    def heads(self) -> Floats:
        """Return what the state adds to the logits: (tokens, hidden)."""
        return self.vector[-self.tokens * (self.hidden + 1) : -self.tokens].reshape(-1, self.hidden)

    @property
    def biases(self) -> Floats:
        """Return what is added to the logits whatever the state: (tokens,)."""
        return self.vector[-self.tokens :]

    def draw(self, vocabulary: Vocabulary, rng: Generator) -> Any:
        state = cell = np.zeros(self.hidden)
        token = -1  # the last row of the inputs
        inputs, recurrent, heads, biases = self.inputs, self.recurrent, self.heads, self.biases

        def choose(slot: Slot) -> int:
            nonlocal state, cell, token
            gates = _gates(inputs[token] + state @ recurrent)
            state, cell = _advance(gates, cell)
            first = vocabulary.first[slot.name]
            options = slice(first, first + slot.options)
            logits = heads[options] @ state + biases[options]
            chances = np.exp(logits - logits.max()).cumsum()
            # rounding might lead past the last option
            taken = min(int(np.searchsorted(chances, rng.random() * chances[-1], side="right")), slot.options - 1)
            token = first + taken
            return taken

        return compose(vocabulary.part, choose)

    def gradient(self, tokens: Tokens, possible: Mask, advantage: float, entropy: float) -> Floats:
        """Return the direction that raises `advantage` times the log-probability of the tokens, and the entropy.

        The entropy, weighed by `entropy`, is that of the choices that led to the tokens.
        """
        states, cells, gates = self.states(tokens)
        logs = self.log_chances(states, possible)
        chances = np.exp(logs)
        surprise = np.where(possible, logs, 0.0)
        uncertainty = -(chances * surprise).sum(axis=1, keepdims=True)
        by_logit = -advantage * chances - entropy * chances * (surprise + uncertainty)  # (steps, tokens)
        by_logit[np.arange(len(tokens)), tokens] += advantage
        by_gate = self._back(by_logit @ self.heads, cells, gates)
        whole = Controller(np.zeros_like(self.vector), self.tokens, self.hidden)
        whole.inputs[_before(tokens)] = by_gate  # no token comes twice in a design
        whole.recurrent[:] = states[:-1].T @ by_gate
        whole.heads[:] = by_logit.T @ states[1:]
        whole.biases[:] = by_logit.sum(axis=0)
        return whole.vector

    def states(self, tokens: Tokens) -> tuple[Floats, Floats, Floats]:
        """Return the states and cells before and after each step, and the gates of each step."""
        states, cells = np.zeros((2, len(tokens) + 1, self.hidden))
        gates = self.inputs[_before(tokens)]
        recurrent = self.recurrent
        for step, gate in enumerate(gates):
            gate[:] = _gates(gate + states[step] @ recurrent)
            states[step + 1], cells[step + 1] = _advance(gate, cells[step])
        return states, cells, gates

    def log_chances(self, states: Floats, possible: Mask) -> Floats:
        """Return the log-probability of every token at every step: (steps, tokens)."""
        logits = np.where(possible, states[1:] @ self.heads.T + self.biases, -np.inf)
        logits -= logits.max(axis=1, keepdims=True)
        logs: Floats = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
        return logs

    def _back(self, by_state: Floats, cells: Floats, gates: Floats) -> Floats:
        """Return the gradient by the gates' inputs, given that by the states as the heads see them."""
        keep, forget, show, new = np.split(gates, 4, axis=1)
        bounded = np.tanh(cells[1:])
        slopes = gates * (1.0 - gates)
        slopes[:, -self.hidden :] = 1.0 - np.square(new)
        others = np.stack([new, cells[:-1], bounded, keep], axis=1)  # what each gate is multiplied with
        through = show * (1.0 - np.square(bounded))
        by_gate, recurrent = np.empty_like(gates), self.recurrent.T
        state = cell = np.zeros(self.hidden)
        for step in range(len(gates) - 1, -1, -1):
            state = by_state[step] + state
            cell = cell + state * through[step]
            change = others[step] * cell
            change[2] = bounded[step] * state
            by_gate[step] = change.ravel() * slopes[step]
            cell = cell * forget[step]
            state = by_gate[step] @ recurrent
        return by_gate


def _gates(inputs: Floats) -> Floats:
    """Return the gates that keep, forget and show, from 0 to 1, and the new content, from -1 to 1."""
    quarter = len(inputs) // 4
    gates: Floats = np.tanh(np.concatenate([0.5 * inputs[: 3 * quarter], inputs[3 * quarter :]]))
    gates[: 3 * quarter] = 0.5 * gates[: 3 * quarter] + 0.5  # the logistic function, by way of tanh
    return gates


def _advance(gates: Floats, cell: Floats) -> tuple[Floats, Floats]:
    keep, forget, show, new = gates.reshape(4, -1)
    cell = forget * cell + keep * new
    return show * np.tanh(cell), cell


def _before(tokens: Tokens) -> Tokens:
    return np.concatenate([[-1], tokens[:-1]])


TRIES = 50  # a confident controller repeats itself; then its last design is mutated
_KEEP = (0.9, 0.999)  # of Adam's moments


@dataclass(frozen=True, eq=False)
class Learner:
    """Hold a controller after some updates, the mean reward of late, and the moments that Adam keeps."""

    controller: Controller
    baseline: float
    mean: Floats
    square: Floats
    updates: int = 0


@dataclass(frozen=True)
class Reinforce(CheckedSearcher):
    """Draw designs from an LSTM controller updated by policy gradient after each finished trial, in order.

    The reward is the trial's target among the trials up to its own, so that in a serial study the controller that
    proposed a design is exactly the one that learns from it. What counts is by how much a reward exceeds the moving
    average of those before, of which `decay` remains after each; `entropy` weighs the entropy bonus.
    """

    learning_rate: float = option(0.02, "learning rate of the controller", least=0, most=1)
    entropy: float = option(0.03, "weight of the entropy bonus", least=0, most=1)
    decay: float = option(0.9, "decay of the moving average of rewards", least=0, most=1)
    hidden: int = option(32, "hidden size of the controller", least=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        tuple(slots(self.space.root))  # fail at construction, not at the first proposal, where a part has no slots

    def ask(self, history: History, rng: Generator) -> Request:
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
        """Return the learner after these trials; it continues from the cached one where possible."""
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
        controller = Controller.new(self._vocabulary.size, self.hidden)
        return Learner(controller, 0.0, *np.zeros((2, len(controller.vector))))

    @cached_property
    def _last(self) -> list[tuple[tuple[Trial, ...], Learner]]:
        # the last replay, so that a serial study learns from each trial once; it only saves time
        return [((), self._untaught)]
