"""How the best score rose over a study."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from formwright.core.records import Objective
from formwright.report.rows import TrialRow

Corner = tuple[float, float]


@dataclass(frozen=True)
class Progress:
    """The best score so far, as the places where it changes and the end: over trials, and over seconds."""

    by_number: tuple[Corner, ...] = ()
    by_seconds: tuple[Corner, ...] = ()


def progress(rows: Sequence[TrialRow], goal: Objective) -> Progress:
    """Follow the best score of the trials within all limits; all of them had the same budget."""
    scored = [row for row in rows if row.feasible and goal.name in row.metrics]
    timed = sorted((row for row in scored if row.elapsed is not None), key=lambda row: row.elapsed or 0.0)
    return Progress(
        _corners(((row.number, row.metrics[goal.name]) for row in scored), goal),
        _corners(((row.elapsed or 0.0, row.metrics[goal.name]) for row in timed), goal),
    )


def _corners(points: Iterable[Corner], goal: Objective) -> tuple[Corner, ...]:
    sign = 1.0 if goal.direction == "max" else -1.0
    corners: list[Corner] = []
    last = 0.0
    for place, value in points:
        if not corners or sign * value > sign * corners[-1][1]:
            corners.append((place, value))
        last = place
    return (*corners, (last, corners[-1][1])) if corners and last > corners[-1][0] else tuple(corners)
