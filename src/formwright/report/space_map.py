"""The map of a space: where its designs stand, and which of them the trials of a study are."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA

from formwright.core.errors import FormwrightError
from formwright.core.records import Trial
from formwright.core.rng import derive
from formwright.report.evenly import evenly
from formwright.search.listing import Listing, listing
from formwright.search.predictors import points
from formwright.space.space import Space

FEWEST = 8
MOST_TRIALS, MOST_OTHERS = 2_000, 1_500
_DIGITS = 3  # behind the point, of places that vary by a few units
_STEP = 0.006  # of the map's width: how far designs at one place are drawn apart
_GOLDEN = np.pi * (3 - np.sqrt(5))  # the angle by which seeds of a sunflower follow one another
_Floats = NDArray[np.float64]
_Place = tuple[float, float]


@dataclass(frozen=True)
class Spot:
    """Where the design of a trial stands."""

    number: int
    x: float
    y: float


@dataclass(frozen=True)
class SpaceMap:
    """Places of designs in two dimensions, or `hidden`: why there are none.

    `others` are places of designs that no trial took, out of the `designs` that are known; `whole` says whether these
    are all of the space. `share` is the part of the variance of all designs that two dimensions keep.
    """

    spots: tuple[Spot, ...] = ()
    others: tuple[_Place, ...] = ()
    designs: int = 0
    whole: bool = False
    share: float = 0.0
    hidden: str = ""


def space_map(space: Space, trials: Sequence[Trial], marked: Collection[int] = ()) -> SpaceMap:
    """Place trials and other designs by the principal components of the space's Transformer2vec embedding.

    Very many trials are thinned, but for the `marked` numbers. The map of a space stays the same while a study goes on.
    """
    finished = sum(trial.state == "finished" for trial in trials)
    if finished < FEWEST:
        return SpaceMap(hidden=f"{finished} finished trials are too few for a map; it takes {FEWEST}.")
    try:
        listed = listing(space)
    except FormwrightError as error:
        return SpaceMap(hidden=f"The designs of this space cannot be placed: {error}")
    if not np.ptp(listed.points, axis=0).any():
        return SpaceMap(hidden="The designs of this space cannot be told apart by their distances.")
    return _drawn(listed, _thinned(trials, marked), {trial.request.card.digest for trial in trials})


def _thinned(trials: Sequence[Trial], marked: Collection[int]) -> list[Trial]:
    chosen = set(evenly(len(trials), MOST_TRIALS))
    return [trial for place, trial in enumerate(trials) if place in chosen or trial.number in marked]


def _drawn(listed: Listing, trials: Sequence[Trial], taken: Collection[str]) -> SpaceMap:
    axes = PCA(min(2, listed.points.shape[1]), svd_solver="full").fit(listed.points)
    free = [row for digest, row in listed.row.items() if digest not in taken]
    others = np.unique(_flat(axes, listed.points[free]), axis=0)  # many designs may share a place
    shown = np.sort(derive(0, "map").permutation(len(others))[:MOST_OTHERS])
    places = _flat(axes, points(listed.points_of, [trial.request for trial in trials]))
    width = float(np.ptp(_flat(axes, listed.points), axis=0).max())
    spots = zip(trials, _apart(places, _STEP * width).tolist(), strict=True)
    return SpaceMap(
        spots=tuple(Spot(trial.number, x, y) for trial, (x, y) in spots),
        others=tuple((x, y) for x, y in others[shown].tolist()),
        designs=len(listed.row),
        whole=listed.whole,
        share=float(axes.explained_variance_ratio_.sum()),
    )


def _flat(axes: PCA, places: _Floats) -> _Floats:
    flat = np.zeros((len(places), 2))
    if len(places):
        found = axes.transform(places)
        flat[:, : found.shape[1]] = found
    rounded: _Floats = flat.round(_DIGITS) + 0.0  # which makes -0.0 a plain zero
    return rounded


def _apart(places: _Floats, step: float) -> _Floats:
    """Draw designs that share a place around it, like seeds of a sunflower, so that each can be pointed at."""
    seen: dict[_Place, int] = {}
    moved = places.copy()
    for row, (x, y) in enumerate(places.tolist()):
        turn = seen[x, y] = seen.get((x, y), -1) + 1
        radius, angle = step * np.sqrt(turn), turn * _GOLDEN
        moved[row] += (radius * np.cos(angle), radius * np.sin(angle))
    rounded: _Floats = moved.round(_DIGITS)
    return rounded
