"""The contestants: our searchers, and Optuna and pymoo as their own manuals use them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import optuna
from pymoo.algorithms.moo.nsga2 import NSGA2
from pymoo.core.mixed import MixedVariableDuplicateElimination, MixedVariableMating, MixedVariableSampling
from pymoo.core.problem import ElementwiseProblem
from pymoo.core.variable import Choice, Integer
from pymoo.optimize import minimize

from formwright.core.protocols import Design
from formwright.core.records import Budget, History, Observation, Request, Trial
from formwright.core.rng import derive
from formwright.search import make_searcher
from formwright.search.categorical import Slot, compose, slots
from search_kit.problem import FULL, GOALS, Problem

Contestant = Callable[[Problem, int, int], History]


def ours(name: str, problem: Problem, evaluations: int, seed: int) -> History:
    """Run one of our searchers as a study does, until the steps of a number of full evaluations are spent."""
    searcher = make_searcher(name, problem.space, GOALS, trials=evaluations, steps=FULL)
    trials: list[Trial] = []
    left = evaluations * FULL
    while left > 0:
        request = searcher.ask(History(tuple(trials)), derive(seed, "ask", len(trials)))
        trials.append(Trial(len(trials), request, "finished", problem.evaluate(request)))
        left -= request.budget.steps or FULL
    return History(tuple(trials))


class Record:
    """Evaluate what a peer proposes, and keep it as a history."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self.trials: list[Trial] = []

    def __call__(self, design: Design) -> Observation:
        request = Request(self._problem.space.card(design), Budget.full(), None, design)
        found = self._problem.evaluate(request)
        self.trials.append(Trial(len(self.trials), request, "finished", found))
        return found


def by_optuna(sampler: Callable[[int], Any], problem: Problem, evaluations: int, seed: int) -> History:
    """Let Optuna suggest each slot when the slots before it have made it active."""
    record = Record(problem)

    def objective(trial: optuna.Trial) -> tuple[float, float]:
        found = record(compose(problem.space.root, partial(_suggest, trial))).metrics
        return found["accuracy"], found["params"]

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        study = optuna.create_study(directions=["maximize", "minimize"], sampler=sampler(seed))
        study.optimize(objective, n_trials=evaluations)
    return History(tuple(record.trials))


def _suggest(trial: optuna.Trial, slot: Slot) -> int:
    if slot.ordered:
        return trial.suggest_int(slot.name, 0, slot.options - 1)
    return int(trial.suggest_categorical(slot.name, range(slot.options)))


class Flat(ElementwiseProblem):  # type: ignore[misc]  # pymoo has no types
    """Show pymoo every slot that a design can have; it knows no conditions, and inactive slots change nothing."""

    def __init__(self, record: Record, problem: Problem) -> None:
        self._record, self._root = record, problem.space.root
        super().__init__(n_obj=2, vars={slot.name: _variable(slot) for slot in slots(self._root)})

    def _evaluate(self, x: dict[str, Any], out: dict[str, Any], *_: Any, **__: Any) -> None:
        found = self._record(compose(self._root, lambda slot: int(x[slot.name]))).metrics
        out["F"] = np.array([-found["accuracy"], found["params"]])


def _variable(slot: Slot) -> Any:
    return Integer(bounds=(0, slot.options - 1)) if slot.ordered else Choice(options=list(range(slot.options)))


def by_pymoo(population: int, problem: Problem, evaluations: int, seed: int) -> History:
    """Run pymoo's NSGA-II with its operators for mixed variables."""
    record, distinct = Record(problem), MixedVariableDuplicateElimination()
    algorithm = NSGA2(
        population,
        sampling=MixedVariableSampling(),
        mating=MixedVariableMating(eliminate_duplicates=distinct),
        eliminate_duplicates=distinct,
    )
    minimize(Flat(record, problem), algorithm, ("n_eval", evaluations), seed=seed)
    return History(tuple(record.trials[:evaluations]))


OURS = ("nsga2", "regularized-evolution", "halving", "random")
BEST_PEER = "optuna tpe multivariate"
CONTESTANTS: dict[str, Contestant] = {
    **{name: partial(ours, name) for name in OURS},
    "optuna tpe": partial(by_optuna, lambda seed: optuna.samplers.TPESampler(seed=seed)),
    BEST_PEER: partial(by_optuna, lambda seed: optuna.samplers.TPESampler(seed=seed, multivariate=True, group=True)),
    "optuna nsga2": partial(by_optuna, lambda seed: optuna.samplers.NSGAIISampler(seed=seed)),
    "optuna nsga2, population 20": partial(
        by_optuna, lambda seed: optuna.samplers.NSGAIISampler(population_size=20, seed=seed)
    ),
    "pymoo nsga2, population 20": partial(by_pymoo, 20),
}
