"""BANANAS (White et al., 2021): an ensemble of networks predicts the scores of mutants of the best designs.

Path encoding describes a design by the paths through its computation graph. Every residual connection doubles the
number of paths, and nearly all of them occur in one design only. So the graph is cut at nodes that all paths share,
and the paths through each piece are used, marked with the position of the piece.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from formwright.arch.card import Card
from formwright.arch.graph import graph_of
from formwright.core.options import option
from formwright.core.records import History
from formwright.core.rng import derive
from formwright.search.candidates import PredictorSearch, new_proposals, offspring, points, ranked
from formwright.search.listing import Place, foreign, listing, one_hot
from formwright.search.proposals import Proposal, breeding, warming_up
from formwright.search.scores import targets
from formwright.space import Space

Floats = NDArray[np.float64]
Source = tuple[int, int]  # a node, and which operand it is
Path = tuple[int, int]  # its length, and a code of the labels on the way
MOST = 64  # paths kept of one piece, shortest first
COLUMNS = 256
ENTRY = -1
SAMPLE = 512
_MIX = 0x9E3779B97F4A7C15  # odd, so that no two codes become one
_MASK = 2**64 - 1


@lru_cache(maxsize=8)
def path_encoding(space: Space, columns: int = COLUMNS) -> Place:
    """Return a function that encodes designs by their paths: 1 in the column of each path that a design has.

    The columns are the commonest paths of the space, without those that all designs have. Cards that are not
    Formwright's own have no graph: their designs are placed by the encoding of the space (one-hot).
    """
    rng = derive(0, "paths", space.name)
    cards = [space.card(space.sample(rng, "gene")) for _ in range(SAMPLE)]
    if foreign(cards):
        return one_hot(space)
    counts = Counter(code for card in cards for code in path_codes(card))
    commonest = sorted((-count, code) for code, count in counts.items() if count < SAMPLE)[:columns]
    column = {code: index for index, (_, code) in enumerate(commonest)}

    def place(designs: Sequence[Any], cards: Sequence[Card]) -> Floats:
        points = np.zeros((len(cards), len(column)))
        for point, card in zip(points, cards, strict=True):
            point[[column[code] for code in path_codes(card) if code in column]] = 1.0
        return points

    return place


@lru_cache(maxsize=1 << 14)
def path_codes(card: Card) -> tuple[int, ...]:
    """Return a code for each path through each piece of a design's graph; codes are the same in every process."""
    graph = graph_of(card)
    sources: list[list[Source]] = [[] for _ in graph.labels]
    for source, target, place in graph.edges:
        sources[target].append((source, place))
    sources = [found or [(ENTRY, 0)] for found in sources]  # inputs have the one source `ENTRY`
    codes: list[int] = []
    for place, (start, end) in enumerate(pairwise(_cuts(sources))):
        codes += [code for _, code in _paths(graph.labels, sources, start, end, place)]
    return tuple(codes)


def _cuts(sources: list[list[Source]]) -> list[int]:
    """List the nodes that every path passes, from the entry to the output."""
    farthest = ENTRY  # node that the edges out of the nodes before lead to
    reach = {source: target for target, found in enumerate(sources) for source, _ in found}
    cuts = []
    for node in range(ENTRY, len(sources)):
        if farthest <= node:
            cuts.append(node)
        farthest = max(farthest, reach.get(node, node))
    return cuts


def _paths(labels: Sequence[str], sources: list[list[Source]], start: int, end: int, place: int) -> list[Path]:
    """Return the shortest paths from a cut to the next one."""
    ways: dict[int, list[Path]] = {start: [(0, place)]}
    for node in range(start + 1, end + 1):
        label = _code(labels[node])
        found = {
            (length + 1, ((code + operand) * _MIX & _MASK) ^ label)
            for source, operand in sources[node]
            for length, code in ways[source]
        }
        ways[node] = sorted(found)[:MOST]
    return ways[end]


@lru_cache(maxsize=1 << 12)
def _code(label: str) -> int:
    return int.from_bytes(hashlib.blake2b(label.encode(), digest_size=8).digest(), "little")


# for each layer weights (members, inputs, outputs) and biases (members, 1, outputs)
Layers = list[tuple[Floats, Floats]]
HIDDEN = (32, 32)
STEPS, BATCH = 150, 32
LEARNING_RATE, DECAY = 0.01, 1e-3
_KEEP = (0.9, 0.99)  # of Adam's moments: too few steps for the usual 0.999
_TINY = 1e-12


def predict(points: Floats, values: Floats, queries: Floats, members: int, rng: Generator) -> Floats:
    """Return what each member predicts at each query, (members, queries), after training on values at points.

    Members differ in their first weights and in the points that they see at each step.
    """
    centre = points.mean(axis=0)
    # one scale for all columns: a column that is rare among the points must not weigh more than the others
    scale = max(float((points - centre).std()), _TINY)
    layers = _train((points - centre) / scale, values, members, rng)
    asked: Floats = np.broadcast_to((queries - centre) / scale, (members, *queries.shape))
    return outputs(layers, asked)[-1][..., 0]


def outputs(layers: Layers, points: Floats) -> list[Floats]:
    """Return the points, (members, points, inputs), and what each layer makes of them."""
    found = [points]
    for index, (weights, biases) in enumerate(layers):
        output = found[-1] @ weights + biases
        found.append(output if index == len(layers) - 1 else np.maximum(output, 0.0))
    return found


def slopes(layers: Layers, points: Floats, values: Floats) -> Layers:
    """Return the gradient of each member's mean squared error by its weights and biases."""
    found = outputs(layers, points)
    back = (found[-1] - values[..., None]) * (2.0 / points.shape[1])
    gradient: Layers = []
    for (weights, _), entry in zip(reversed(layers), found[-2::-1], strict=True):
        gradient.append((entry.transpose(0, 2, 1) @ back, back.sum(axis=1, keepdims=True)))
        back = (back @ weights.transpose(0, 2, 1)) * (entry > 0)
    return gradient[::-1]


def _train(points: Floats, values: Floats, members: int, rng: Generator) -> Layers:
    layers, vector = _first_layers((points.shape[1], *HIDDEN, 1), members, rng)
    mean, square = np.zeros((2, len(vector)))
    for step in range(1, STEPS + 1):
        rows = rng.integers(len(points), size=(members, min(BATCH, len(points))))
        slope = _flat(slopes(layers, points[rows], values[rows])) + DECAY * vector
        mean += (1.0 - _KEEP[0]) * (slope - mean)
        square += (1.0 - _KEEP[1]) * (np.square(slope) - square)
        rate = LEARNING_RATE * (1.0 - step / (STEPS + 1)) / (1.0 - _KEEP[0] ** step)
        vector -= rate * mean / (np.sqrt(square / (1.0 - _KEEP[1] ** step)) + 1e-8)  # and with it the layers
    return layers


def _first_layers(sizes: tuple[int, ...], members: int, rng: Generator) -> tuple[Layers, Floats]:
    """Return random layers, and the one vector that all their weights and biases are parts of."""
    drawn = [
        (rng.normal(0.0, np.sqrt(2.0 / inputs), (members, inputs, width)), np.zeros((members, 1, width)))
        for inputs, width in pairwise(sizes)
    ]
    vector = _flat(drawn)
    shapes = [array.shape for layer in drawn for array in layer]
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes])[:-1]
    parts = [part.reshape(shape) for part, shape in zip(np.split(vector, ends), shapes, strict=True)]
    return list(zip(parts[::2], parts[1::2], strict=True)), vector


def _flat(layers: Layers) -> Floats:
    return np.concatenate([array.ravel() for layer in layers for array in layer])


Encoding = Literal["path", "transformer2vec", "one-hot"]
RANDOM = 4  # mutants per random candidate


@dataclass(frozen=True)
class Bananas(PredictorSearch):
    """Propose the best candidate by independent Thompson sampling, after `initial` random designs.

    Candidates are `candidates` mutants of the `parents` best designs, and a quarter as many random ones. The score of
    each is drawn from a normal distribution with the mean and deviation of what `members` networks predict for it.

    Differs from the paper: the networks are retrained for each proposal and not for every tenth, and have two layers
    of 32 instead of ten of 20; some candidates are random; paths are those through pieces of the graph. Designs whose
    cards are not Formwright's own have one-hot coordinates.
    """

    coordinates: Encoding = option("path", "how designs are encoded for the predictors")
    members: int = option(5, "networks in the ensemble", least=2)
    candidates: int = option(100, "mutants that are scored for each proposal", least=1)
    parents: int = option(5, "best designs that are mutated", least=1)

    def _promising(self, history: History, rng: Generator) -> Iterator[Proposal]:
        trials = breeding(history)
        if warming_up(history, self.initial) or len(trials) < 2:
            return
        near = offspring(self.space, history, self.objectives, self.parents, self.candidates, rng)
        far = (self.space.sample(rng, "gene") for _ in range(self.candidates // RANDOM))
        candidates = new_proposals(self.space, [*near, *far], history)
        if not candidates:
            return
        paths = self.coordinates == "path"
        place = path_encoding(self.space) if paths else listing(self.space, self.coordinates).points_of
        seen = points(place, [trial.request for trial in trials])
        scores = predict(seen, targets(trials, self.objectives), points(place, candidates), self.members, rng)
        drawn = rng.normal(scores.mean(axis=0), scores.std(axis=0))
        yield from (candidates[index] for index in ranked(drawn, rng))
