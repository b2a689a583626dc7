"""BANANAS (White et al., 2021): an ensemble of networks predicts the scores of mutants of the best designs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, get_args

from numpy.random import Generator

from formwright.core.records import History, Objective, Request
from formwright.search.ensemble import predict
from formwright.search.listing import Place, listing
from formwright.search.options import among, at_least, check
from formwright.search.parents import breeding, warming_up
from formwright.search.path_encoding import path_encoding
from formwright.search.predictors import (
    INITIAL,
    first_or_random,
    initial_for,
    new_proposals,
    offspring,
    points,
    ranked,
)
from formwright.search.scores import goals_of
from formwright.search.targets import targets
from formwright.search.unseen import Legal, Proposal, anything
from formwright.space import Space

Encoding = Literal["path", "transformer2vec", "one-hot"]

RANDOM = 4  # for so many mutants there is one random candidate


@dataclass(frozen=True)
class Bananas:
    """Take the candidate that does best in independent Thompson sampling, after `initial` random designs.

    Candidates are `candidates` mutants of the `parents` best designs, and a quarter as many random ones. The score of
    each is drawn from a normal distribution with the mean and deviation of what `members` networks predict for it.

    Differs from the paper: the networks are trained anew for each proposal and not for every tenth, and have two layers
    of 32 instead of ten of 20; some candidates are random; paths are those through pieces of the graph.
    """

    space: Space
    objectives: tuple[Objective, ...]
    legal: Legal = anything
    coordinates: Encoding = "path"
    members: int = 5
    candidates: int = 100
    parents: int = 5
    initial: int = INITIAL

    def __post_init__(self) -> None:
        goals_of(self.objectives)
        check(
            among("coordinates", self.coordinates, get_args(Encoding))
            + at_least(2, members=self.members, initial=self.initial)
            + at_least(1, candidates=self.candidates, parents=self.parents)
        )

    @staticmethod
    def for_budget(trials: int | None, steps: int | None) -> dict[str, int]:
        """Return fewer random designs for a small budget."""
        return {"initial": initial_for(trials)}

    def ask(self, history: History, rng: Generator) -> Request:
        """Return the unseen legal candidate that drew the best score."""
        return first_or_random(self._promising(history, rng), self.space, history, rng, self.legal)

    def _promising(self, history: History, rng: Generator) -> Iterator[Proposal]:
        trials = breeding(history)
        if warming_up(history, self.initial) or len(trials) < 2:
            return
        candidates = self._candidates(history, rng)
        if not candidates:
            return
        place = self._place()
        seen = points(place, [trial.request for trial in trials])
        scores = predict(seen, targets(trials, self.objectives), points(place, candidates), self.members, rng)
        drawn = rng.normal(scores.mean(axis=0), scores.std(axis=0))
        yield from (candidates[index] for index in ranked(drawn, rng))

    def _candidates(self, history: History, rng: Generator) -> list[Proposal]:
        near = offspring(self.space, history, self.objectives, self.parents, self.candidates, rng)
        far = (self.space.sample(rng, "gene") for _ in range(self.candidates // RANDOM))
        return new_proposals(self.space, [*near, *far], history)

    def _place(self) -> Place:
        if self.coordinates == "path":
            return path_encoding(self.space)
        return listing(self.space, self.coordinates).points_of
