"""Importance of choices: how much worse a model predicts the scores when one choice is shuffled."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestRegressor
from sklearn.metrics import r2_score
from sklearn.model_selection import KFold

from formwright.core.records import Objective, Trial
from formwright.core.rng import derive
from formwright.report.figures import squarable
from formwright.search.categorical import decompose
from formwright.space.space import Space

FEWEST, LEAST_R2 = 20, 0.2
_MOST, _FOLDS, _TREES, _SHUFFLES = 1_000, 5, 40, 3
_STEPS = ".training steps"
_INDEX = re.compile(r"\[\d+\]")
_Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Bar:
    """One choice, and the share of explained variance that is lost when it is shuffled."""

    name: str
    lost: float


@dataclass(frozen=True)
class ChoiceImportance:
    """Choices from the most to the least important, or in `hidden` why they are unknown.

    `by_kind` shuffles a choice in all layers together, `by_place` in one place. `r2` is the share of the variance of
    the scores that a random forest explains in held-out trials.
    """

    r2: float | None = None
    trials: int = 0
    by_kind: tuple[Bar, ...] = ()
    by_place: tuple[Bar, ...] = ()
    hidden: str = ""


def importance(space: Space, finished: Sequence[Trial], goal: Objective) -> ChoiceImportance:
    """Find the choices that move the score, by cross-validated permutation importance."""
    trials = [trial for trial in finished if trial.request.design is not None]
    if len(trials) < FEWEST:
        return ChoiceImportance(hidden=f"Importance needs {FEWEST} finished trials; there are {len(trials)}.")
    if len(trials) > _MOST:
        chosen = derive(0, "importance").choice(len(trials), _MOST, replace=False)
        trials = [trials[index] for index in sorted(chosen)]
    names, features = _features(space, trials)
    scores, _ = squarable([one.observation.metrics[goal.name] for one in trials if one.observation is not None])
    if not names or np.ptp(scores) == 0.0:
        return ChoiceImportance(hidden="All finished trials took the same choices or have the same score.")
    return _judged(names, features, scores)


def readable(name: str) -> str:
    """Format the name of a slot: `.layers[0].operation=sa` becomes `layers 1, operation (sa)`."""
    numbered = _INDEX.sub(lambda found: f" {int(found[0][1:-1]) + 1}", name.strip("."))
    return re.sub(r"=([^.]+)", r" (\1)", numbered).replace(".", ", ").replace("_", " ")


def _judged(names: list[str], features: _Floats, scores: _Floats) -> ChoiceImportance:
    kinds, places = _groups(names, lambda name: _INDEX.sub("", name)), _groups(names, str)
    lost, r2 = _shuffled(features, scores, [*kinds.values(), *places.values()])
    if r2 < LEAST_R2:
        share = f"{max(r2, 0.0):.0%} of the variance in held-out trials"
        return ChoiceImportance(
            r2, len(scores), hidden=f"A random forest explains only {share}: too little to rank choices."
        )
    bars = [Bar(readable(name), value) for name, value in zip([*kinds, *places], lost, strict=True)]
    return ChoiceImportance(r2, len(scores), _sorted(bars[: len(kinds)]), _sorted(bars[len(kinds) :]))


def _features(space: Space, trials: Sequence[Trial]) -> tuple[list[str], _Floats]:
    """Return one column per slot that varies: the index of the option, -1 where the slot is inactive."""
    taken = [{slot.name: option for slot, option in decompose(space.root, trial.request.design)} for trial in trials]
    for options, trial in zip(taken, trials, strict=True):
        options[_STEPS] = -1 if trial.request.budget.steps is None else trial.request.budget.steps
    names = list(dict.fromkeys(name for options in taken for name in options))
    table = np.array([[options.get(name, -1) for name in names] for options in taken], dtype=np.float64)
    varied = np.ptp(table, axis=0) > 0.0
    return [name for name, varies in zip(names, varied, strict=True) if varies], table[:, varied]


def _groups(names: list[str], kind: Callable[[str], str]) -> dict[str, list[int]]:
    groups: dict[str, list[int]] = {}
    for column, name in enumerate(names):
        groups.setdefault(kind(name), []).append(column)
    return groups


def _shuffled(features: _Floats, scores: _Floats, groups: list[list[int]]) -> tuple[_Floats, float]:
    """Return the R² lost for each shuffled group of columns, and the R² itself, both on held-out folds."""
    rng = derive(0, "importance", "shuffles")
    whole, broken = np.zeros(len(scores)), np.zeros((len(groups), _SHUFFLES, len(scores)))
    for seen, unseen in KFold(_FOLDS, shuffle=True, random_state=0).split(features):
        forest = RandomForestRegressor(_TREES, min_samples_leaf=2, max_features=0.5, random_state=0)
        forest.fit(features[seen], scores[seen])
        whole[unseen] = forest.predict(features[unseen])
        copies = np.tile(features[unseen], (len(groups), _SHUFFLES, 1, 1))  # (groups, shuffles, trials, columns)
        for group, columns in enumerate(groups):
            for shuffle in range(_SHUFFLES):
                copies[group, shuffle][:, columns] = features[rng.permutation(unseen)][:, columns]
        broken[:, :, unseen] = forest.predict(copies.reshape(-1, features.shape[1])).reshape(*copies.shape[:3])
    r2 = float(r2_score(scores, whole))
    worse = np.array([np.mean([r2_score(scores, guess) for guess in guesses]) for guesses in broken])
    return np.maximum(r2 - worse, 0.0), r2


def _sorted(bars: Sequence[Bar]) -> tuple[Bar, ...]:
    return tuple(sorted((bar for bar in bars if bar.lost > 0.0), key=lambda bar: -bar.lost))
