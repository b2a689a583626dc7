"""Where BOSHNAS may go: the designs that are new and within the limits, with their points scaled for networks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from formwright.core.records import History, Request
from formwright.search.boshnas.parameters import Floats
from formwright.search.candidates import Candidates, Rows, legal_rows, unseen
from formwright.search.listing import Listing
from formwright.search.predictors import points
from formwright.search.unseen import Legal, Proposal


@dataclass(frozen=True, eq=False)
class Terrain:
    """Hold the rows of a listing that are within the limits, each card once, and the scale of the points.

    Points are shifted and divided by one number, so that coordinates vary by about 1 and distances keep their order.
    """

    listed: Listing
    rows: Rows
    centre: NDArray[np.float64]
    deviation: float

    @classmethod
    def of(cls, listed: Listing, legal: Legal) -> Terrain:
        """Survey a listing; every card of it is checked once."""
        centre = listed.points.mean(axis=0)
        deviation = float(np.sqrt(np.mean((listed.points - centre) ** 2)))
        return cls(listed, legal_rows(listed, legal), centre, deviation or 1.0)

    def place(self, asked: Sequence[Request | Proposal]) -> Floats:
        """Return the scaled points of what was asked for, or may be."""
        return self._scaled(points(self.listed.points_of, asked))

    def candidates(self, history: History, more: Sequence[Proposal] = ()) -> Candidates:
        """Return the designs that nobody asked for yet, and more that are not listed."""
        found = unseen(self.listed, history, self.rows, more)
        return replace(found, points=self._scaled(found.points))

    def _scaled(self, places: Floats) -> Floats:
        return ((places - self.centre) / self.deviation).astype(np.float32)
