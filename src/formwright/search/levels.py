"""Levels of a search from coarse to fine: what each leaves free, and when it is over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from formwright.core.errors import nearest
from formwright.core.records import Objective, Trial
from formwright.search.scores import goals_of, score
from formwright.space import Space, lists_of

Level = Mapping[str, int]
_THE_STUDYS = ("trials", "steps")  # no searcher's own to set


def usual_levels(space: Space) -> tuple[Level, ...]:
    """List levels that free the lists of a space from the outer to the inner; the last one frees all.

    In the first, members of outer lists are equal in pairs; members of a list inside another are all equal until the
    outer one has been free for a level.
    """
    lists = list(lists_of(space.root))
    deepest = max((found.inside for found in lists), default=-1)
    levels: list[Level] = []
    for freed in range(deepest + 2):
        tied = {found.name: found.most for found in lists if found.inside >= max(freed, 1) and found.most > 1}
        pairs = {found.name: 2 for found in lists if found.inside == freed == 0 and found.most > 1}
        if not levels or levels[-1] != pairs | tied:
            levels.append(pairs | tied)
    return tuple(levels) if levels else ({},)


def faults_of(levels: object, shares: object, options: object, space: Space) -> list[str]:
    """List what is wrong with the levels of a space, their shares of the trials or their searcher's options."""
    if not isinstance(options, Mapping) or not options.keys().isdisjoint(_THE_STUDYS):
        return [f"options is {options!r}; it must be an object with settings of the searcher of each level."]
    if not (isinstance(levels, Sequence) and levels and all(map(_is_level, levels))):
        return [f"levels is {levels!r}; it must be a list of objects that name lists, such as [{{'layers': 2}}, {{}}]."]
    if shares is not None and not (
        isinstance(shares, Sequence) and len(shares) == len(levels) and all(map(_is_share, shares))
    ):
        return [f"shares is {shares!r}; it must be a list of {len(levels)} numbers above 0, one for each level."]
    return _strange(levels, space)


def _strange(levels: Sequence[Level], space: Space) -> list[str]:
    """List the names that are no list of the space, of all levels: a study would meet the last one after hours."""
    known = sorted(found.name for found in lists_of(space.root))
    faults = []
    for name in dict.fromkeys(name for level in levels for name in level if name not in known):
        close = nearest(name, known)
        hint = f" Nearest: {close[0]!r}." if close else ""
        faults.append(f"no list of space {space.name!r} is called {name!r}.{hint}")
    told = f"It has: {', '.join(known) or 'none'}. Leave levels out (levels=null) for the usual ones of a space."
    return [*faults, told] if faults else []


def converged(
    trials: Sequence[Trial], objectives: Sequence[Objective], patience: int, tolerance: float, warmup: int = 0
) -> int | None:
    """Return after how many trials the last `patience` finished ones had bettered no goal by more than `tolerance`.

    The first `warmup` trials that did not fail are not counted, and neither are pending and failed ones; a trial beyond
    a limit betters nothing. None means that this has not happened.
    """
    best, stale, alive = np.full(len(goals_of(objectives)), np.inf), 0, 0
    for number, trial in enumerate(trials):
        alive += trial.state != "failed"  # a searcher replaces failed random designs by further ones
        if trial.state != "finished":
            continue
        found = score([trial], objectives)
        values = found.values[0] if not found.violations[0] else np.full_like(best, np.inf)
        better = bool((values < best - tolerance).any())
        best = np.minimum(best, values)
        stale = 0 if better or alive <= warmup else stale + 1
        if stale >= patience:
            return number + 1
    return None


def _is_level(level: object) -> bool:
    return isinstance(level, Mapping) and all(_is_whole(tied) and tied >= 1 for tied in level.values())


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_share(share: object) -> bool:
    return isinstance(share, int | float) and not isinstance(share, bool) and 0 < share < np.inf
