"""Optuna's samplers as searchers: an in-memory study is rebuilt from the history for each proposal."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar

from numpy.random import Generator

from formwright.core.errors import IllegalInput
from formwright.core.extras import need
from formwright.core.options import option
from formwright.core.protocols import Design
from formwright.core.records import Budget, History, Request, Trial
from formwright.search.categorical import Slot, compose, decompose, slots
from formwright.search.proposals import breeding, first_unseen, random_unseen
from formwright.search.scores import goals_of, violation
from formwright.search.searchers import CheckedSearcher

TRIES = 3  # a sampler that repeats itself keeps doing so, and each draw is slow


@dataclass(frozen=True)
class OptunaSearch(CheckedSearcher):
    """Propose with one of Optuna's samplers, made by a subclass, after `startup` random designs.

    A sampler may remember nothing but the trials. One that is `FLAT` is shown all slots of the space, inactive ones in
    the middle; one for `NUMBERS` takes every slot for ordered; one with a name in `ONE_GOAL` improves one goal only.
    Before `LEAST` trials are finished it is not asked.
    """

    FLAT: ClassVar[bool] = False
    NUMBERS: ClassVar[bool] = False
    ONE_GOAL: ClassVar[str] = ""
    LEAST: ClassVar[int] = 1

    startup: int = option(10, "random designs before the sampler", least=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        goals = goals_of(self.objectives)
        if len(goals) > 1 and self.ONE_GOAL:
            names = ", ".join(goal.name for goal in goals)
            raise IllegalInput(f"{self.ONE_GOAL} improves one goal, not {names}; take 'nsga2' or 'tpe'.")
        # fail at construction, not at the first proposal
        _optuna()
        tuple(slots(self.space.root))

    def ask(self, history: History, rng: Generator) -> Request:
        if len(breeding(history)) < max(self.startup, self.LEAST) or not self._distributions:
            return random_unseen(self.space, history, rng, self.legal).request(Budget.full())
        with _quiet():
            suggest = partial(self._suggest, self.study(history, seed=int(rng.integers(2**31))))
            return first_unseen(self.space, history, rng, suggest, self.legal, TRIES).request(Budget.full())

    def _sampler(self, seed: int, trials: list[Any]) -> Any:
        """Make the sampler from a seed and the finished trials."""
        raise TypeError(f"{type(self).__name__} has no sampler")

    def study(self, history: History, seed: int) -> Any:
        finished = [self._finished(trial) for trial in breeding(history)]
        running = _optuna().trial.TrialState.RUNNING
        known = (trial for trial in history.pending if trial.request.design is not None)
        pending = [_optuna().trial.create_trial(state=running, **self._parameters(trial)) for trial in known]
        directions = ["maximize" if goal.direction == "max" else "minimize" for goal in goals_of(self.objectives)]
        with _quiet():
            study = _optuna().create_study(directions=directions, sampler=self._sampler(seed, finished))
        study.add_trials([*finished, *pending])
        return study

    def _finished(self, trial: Trial) -> Any:
        assert trial.observation is not None, "a finished trial has an observation"
        metrics = trial.observation.metrics
        limits = [
            objective for objective in self.objectives if objective.name in metrics and objective.bound is not None
        ]
        return _optuna().trial.create_trial(
            values=[metrics[goal.name] for goal in goals_of(self.objectives)],
            constraints={str(limit): violation(limit, metrics[limit.name]) for limit in limits},
            **self._parameters(trial),
        )

    def _parameters(self, trial: Trial) -> dict[str, Any]:
        active = {slot.name: taken for slot, taken in decompose(self.space.root, trial.request.design)}
        if self.FLAT:
            active = {slot.name: active.get(slot.name, slot.options // 2) for slot in self._slots}
        return {"params": active, "distributions": {name: self._distributions[name] for name in active}}

    def _suggest(self, study: Any) -> Design:
        trial = study.ask(self._distributions if self.FLAT else None)

        def choose(slot: Slot) -> int:
            if slot.ordered or self.NUMBERS:
                return int(trial.suggest_int(slot.name, 0, slot.options - 1))
            return int(trial.suggest_categorical(slot.name, tuple(range(slot.options))))

        return compose(self.space.root, choose)

    @cached_property
    def _slots(self) -> tuple[Slot, ...]:
        return tuple(slots(self.space.root))

    @cached_property
    def _distributions(self) -> dict[str, Any]:
        kinds = _optuna().distributions
        return {
            slot.name: kinds.IntDistribution(0, slot.options - 1)
            if slot.ordered or self.NUMBERS
            else kinds.CategoricalDistribution(tuple(range(slot.options)))
            for slot in self._slots
        }


def _optuna() -> Any:
    return need("optuna", "optuna")


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence Optuna's log messages and its warnings about experimental features."""
    logging, experimental = _optuna().logging, _optuna().exceptions.ExperimentalWarning
    before = logging.get_verbosity()
    logging.set_verbosity(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", experimental)
            yield
    finally:
        logging.set_verbosity(before)


class Tpe(OptunaSearch):
    """Propose with Optuna's tree-structured Parzen estimator, after `startup` random designs."""

    def _sampler(self, seed: int, trials: list[Any]) -> Any:
        return _optuna().samplers.TPESampler(seed=seed, n_startup_trials=0, multivariate=True, group=True)


class GpSampler(OptunaSearch):
    """Propose with Optuna's Gaussian process, after `startup` random designs."""

    FLAT = True

    def _sampler(self, seed: int, trials: list[Any]) -> Any:
        return _optuna().samplers.GPSampler(seed=seed, n_startup_trials=0)


class CmaEs(OptunaSearch):
    """Propose with Optuna's CMA-ES, after `startup` random designs."""

    FLAT = NUMBERS = True
    ONE_GOAL = "cmaes"
    LEAST = 10  # it starts from the best tenth

    def _sampler(self, seed: int, trials: list[Any]) -> Any:
        # its state is not stored in the trials, so it starts warm from all of them each time (Nomura et al., 2021); it
        # knows no limits, so trials beyond them are kept from it as soon as there are enough others
        need("cmaes", "optuna")
        feasible = [trial for trial in trials if not any(trial.constraints.values())]
        source = feasible if len(feasible) >= self.LEAST else trials
        return _optuna().samplers.CmaEsSampler(seed=seed, source_trials=source)


class RandomSampler(OptunaSearch):
    """Propose with Optuna's random sampler, after `startup` random designs."""

    def _sampler(self, seed: int, trials: list[Any]) -> Any:
        return _optuna().samplers.RandomSampler(seed=seed)
