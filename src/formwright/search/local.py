"""Local search (White et al., 2021): move to a better neighbour until there is none, then start anew."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from formwright.core.records import Budget, History, Objective, Request, Trial
from formwright.search.fronts import ranks
from formwright.search.scores import goals_of, score
from formwright.search.unseen import Legal, Proposal, anything, random_unseen
from formwright.space import Space


@dataclass(frozen=True)
class LocalSearch:
    """Climb from a random design to its neighbours, and start another climb where none is better.

    A climb is a trial without a parent and all its descendants. It goes on from its best trials: one, or with several
    goals the whole front of the climb (Pareto local search).
    """

    space: Space
    objectives: tuple[Objective, ...]
    legal: Legal = anything

    def __post_init__(self) -> None:
        goals_of(self.objectives)

    def ask(self, history: History, rng: Generator) -> Request:
        """Return a neighbour of the youngest climb that is not over, or the start of a new climb."""
        seen = history.digests
        for climb in reversed(_climbs(history)):
            for trial in self._best(climb):
                proposals = list(self._unseen_neighbours(trial, seen))
                if proposals:
                    return proposals[int(rng.integers(len(proposals)))].request(Budget.full(), trial.number)
        return random_unseen(self.space, history, rng, self.legal).request(Budget.full())

    def _best(self, climb: list[Trial]) -> list[Trial]:
        rank = ranks(score(climb, self.objectives))
        return [climb[index] for index in np.flatnonzero(rank == 0)]

    def _unseen_neighbours(self, trial: Trial, seen: frozenset[str]) -> Iterator[Proposal]:
        for design in self.space.neighbours(trial.request.design):
            card = self.space.card(design)
            if card.digest not in seen and self.legal(card):
                yield Proposal(design, card)


def _climbs(history: History) -> list[list[Trial]]:
    """Return the finished trials of each climb, the oldest climb first."""
    start: dict[int, int] = {}
    climbs: dict[int, list[Trial]] = {}
    for trial in history.trials:
        parent = trial.request.parent
        start[trial.number] = trial.number if parent is None else start.get(parent, parent)
        if trial.state == "finished" and trial.request.design is not None:
            climbs.setdefault(start[trial.number], []).append(trial)
    return [climbs[number] for number in sorted(climbs)]
