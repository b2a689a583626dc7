"""The map of a space: two-dimensional positions of its designs and of the trials of a study."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA

from formwright.core.errors import FormwrightError
from formwright.core.records import Trial
from formwright.core.rng import derive
from formwright.report.figures import evenly_spaced
from formwright.search.candidates import points
from formwright.search.listing import Listing, foreign, listing
from formwright.space.space import Space

FEWEST = 8
MOST_TRIALS, MOST_OTHERS = 2_000, 1_500
_DIGITS = 3  # decimals of the positions
_STEP = 0.006  # of the map's width: distance between designs at one position
_GOLDEN = np.pi * (3 - np.sqrt(5))  # golden angle
_Floats = NDArray[np.float64]
_Place = tuple[float, float]


@dataclass(frozen=True)
class Spot:
    """The position of a trial's design."""

    number: int
    x: float
    y: float


@dataclass(frozen=True)
class SpaceMap:
    """Positions of designs in two dimensions, or in `hidden` why there are none.

    `others` are positions of designs without a trial, out of `designs` known ones; `whole` says whether these are the
    whole space. `share` is the explained variance of the two dimensions. `embedded` says whether positions follow the
    layers of designs (Transformer2vec) or, for designs that are no cards of ours, their one-hot encoding.
    """

    spots: tuple[Spot, ...] = ()
    others: tuple[_Place, ...] = ()
    designs: int = 0
    whole: bool = False
    share: float = 0.0
    hidden: str = ""
    embedded: bool = True


def space_map(space: Space, trials: Sequence[Trial], marked: Collection[int] = ()) -> SpaceMap:
    """Place trials and other designs by the principal components of their coordinates.

    Long studies are thinned, except for the `marked` numbers. The map does not move while a study runs.
    """
    finished = sum(trial.state == "finished" for trial in trials)
    if finished < FEWEST:
        return SpaceMap(hidden=f"A map needs {FEWEST} finished trials; there are {finished}.")
    try:
        listed = listing(space)
    except FormwrightError as error:
        return SpaceMap(hidden=f"The designs of this space cannot be placed: {error}")
    if not np.ptp(listed.points, axis=0).any():
        return SpaceMap(hidden="All designs of this space have distance 0 from each other.")
    return _drawn(listed, _thinned(trials, marked), {trial.request.card.digest for trial in trials})


def _thinned(trials: Sequence[Trial], marked: Collection[int]) -> list[Trial]:
    chosen = set(evenly_spaced(len(trials), MOST_TRIALS))
    return [trial for place, trial in enumerate(trials) if place in chosen or trial.number in marked]


def _drawn(listed: Listing, trials: Sequence[Trial], taken: Collection[str]) -> SpaceMap:
    axes = PCA(min(2, listed.points.shape[1]), svd_solver="full").fit(listed.points)
    free = [row for digest, row in listed.row.items() if digest not in taken]
    others = np.unique(_flat(axes, listed.points[free]), axis=0)  # many designs may share a position
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
        embedded=not foreign(listed.cards),
    )


def _flat(axes: PCA, places: _Floats) -> _Floats:
    flat = np.zeros((len(places), 2))
    if len(places):
        found = axes.transform(places)
        flat[:, : found.shape[1]] = found
    rounded: _Floats = flat.round(_DIGITS) + 0.0  # turns -0.0 into 0.0
    return rounded


def _apart(places: _Floats, step: float) -> _Floats:
    """Arrange designs that share a position in a sunflower pattern, so that each can be pointed at."""
    seen: dict[_Place, int] = {}
    moved = places.copy()
    for row, (x, y) in enumerate(places.tolist()):
        turn = seen[x, y] = seen.get((x, y), -1) + 1
        radius, angle = step * np.sqrt(turn), turn * _GOLDEN
        moved[row] += (radius * np.cos(angle), radius * np.sin(angle))
    rounded: _Floats = moved.round(_DIGITS)
    return rounded
