"""A small recurrent network that writes designs slot by slot, and how to make it more or less likely to write one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from formwright.core.rng import derive
from formwright.search.slots import Slot, compose
from formwright.search.vocabulary import Mask, Tokens, Vocabulary

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
        """Return the controller that every search begins with."""
        size = (tokens + 1 + hidden) * 4 * hidden + tokens * (hidden + 1)
        controller = cls(derive(0, "controller", tokens, hidden).normal(0.0, SPREAD, size), tokens, hidden)
        controller.inputs[:, hidden : 2 * hidden] += 1.0  # remember rather than forget, until told otherwise
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
        """Write a design, each option as likely as the controller holds it to be."""
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
