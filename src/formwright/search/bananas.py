"""BANANAS (White et al., 2021): an ensemble of networks predicts the scores of mutants of the best designs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from formwright.core.records import Budget, History, Objective, Request
from formwright.search import ensemble
from formwright.search.listing import Place, listing
from formwright.search.options import at_least, check
from formwright.search.parents import breeding, warming_up
from formwright.search.path_encoding import path_encoding
from formwright.search.predictors import INITIAL, among, elite, first_legal, initial_for, mutants, new_proposals, points, ranked
from formwright.search.scores import goals_of
from formwright.search.targets import targets
from formwright.search.unseen import Legal, Proposal, anything, random_unseen
from formwright.space import Space

Floats = NDArray[np.float64]
Encoding = Literal["path", "transformer2vec", "one-hot"]

HIDDEN = (32, 32)


@dataclass(frozen=True)
class Bananas:
    space: Space
    objectives: tuple[Objective, ...]
    legal: Legal = anything
    coordinates: Encoding = "path"
    members: int = 5
    candidates: int = 100
    parents: int = 5
    initial: int = INITIAL

    def ask(self, history: History, rng: Generator) -> Request:
        proposal = None
        if not warming_up(history, self.initial) and breeding(history):
            proposal = first_legal(self._promising(history, rng), self.legal)
        if proposal is None:
            proposal = random_unseen(self.space, history, rng, self.legal)
        return proposal.request(Budget.full())

    def _promising(self, history: History, rng: Generator) -> Iterator[Proposal]:
        trials = breeding(history)
        proposals = self._candidates(history, rng)
        if not proposals:
            return
        place = self._place()
        seen = points(place, [trial.request for trial in trials])
        guesses = ensemble.predict(seen, targets(trials, self.objectives), points(place, proposals), self.members, HIDDEN, rng)
        drawn = rng.normal(guesses.mean(axis=0), guesses.std(axis=0))
        yield from (proposals[index] for index in ranked(drawn, rng))

    def _candidates(self, history, rng):
        parents = elite(breeding(history), self.objectives, self.parents)
        near = mutants(self.space, parents, self.candidates, rng)
        far = (self.space.sample(rng, "gene") for _ in range(self.candidates // 4))
        return new_proposals(self.space, [*near, *far], history)

    def _place(self) -> Place:
        return path_encoding(self.space) if self.coordinates == "path" else listing(self.space, self.coordinates).points_of
