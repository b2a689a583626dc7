"""A study in Optuna's storage, so that Optuna's dashboard and its analyses show it."""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from sqlalchemy import create_engine, inspect
from sqlalchemy.exc import SQLAlchemyError

from formwright.core.errors import IllegalInput
from formwright.core.extras import need
from formwright.core.records import Objective, Trial
from formwright.core.text import without_password
from formwright.pipeline.study_facts import study_json
from formwright.pipeline.study_place import Opened
from formwright.search.categorical import decompose
from formwright.search.scores import goals_of, violation
from formwright.space import Combinator, Space
from formwright.study.database import VERSION_TABLE
from formwright.study.events import Event
from formwright.study.replay import Replay

NUMBER = "number"  # the attribute of Optuna's trial that holds the number of ours


def to_optuna(opened: Opened, target: str, space: Space | None = None) -> int:
    """Add the trials that have an outcome to an Optuna study of the same name, and return how many were new.

    `target` is a database URL or an SQLite file; a later call adds what has come since. Parameters are the choices
    of a design; what is no choice, such as an expression, is left out. A `space` in a Python file has to be given,
    since exporting runs no code; without it, trials have no parameters.
    """
    optuna = need("optuna", "optuna")
    space, events = space or opened.space, opened.log.read()
    objectives = [Objective.parse(text) for text in (*opened.search.objectives, *opened.search.limits)]
    ended = [trial for trial in Replay.of(events, space).history.trials if trial.state != "pending"]
    times, facts = _times(events), study_json(opened)["trials"]
    with _quiet(optuna), _database_faults(target):
        study = _study(optuna, _url(target), opened.place.name, goals_of(objectives))
        known = {trial.user_attrs.get(NUMBER) for trial in study.get_trials(deepcopy=False)}
        new = [trial for trial in ended if trial.number not in known]
        for trial in new:
            made = _trial(optuna, trial, space, objectives, facts[trial.number])
            made.datetime_start, made.datetime_complete = times[trial.number]
            study.add_trial(made)
    return len(new)


def _url(target: str) -> str:
    text = target if "://" in target else f"sqlite:///{Path(target)}"
    try:
        engine = create_engine(text)
    except ValueError as error:  # such as a port that is no number
        raise IllegalInput(f"cannot read the URL {without_password(target)}: {error}") from None
    if engine.dialect.name == "sqlite" and engine.url.database in (None, "", ":memory:"):
        raise IllegalInput(f"{without_password(target)} is forgotten at once; name a file, such as sqlite:///optuna.db")
    try:
        if engine.dialect.name == "sqlite" and not Path(engine.url.database or "").is_file():
            return text  # looking would leave an empty file
        if VERSION_TABLE in inspect(engine).get_table_names():
            raise IllegalInput(
                f"{without_password(target)} holds studies of formwright; name another database for Optuna's"
            )
    finally:
        engine.dispose()
    return text


def _study(optuna: Any, url: str, name: str, goals: Sequence[Objective]) -> Any:
    directions = ["maximize" if goal.direction == "max" else "minimize" for goal in goals]
    study = optuna.create_study(storage=url, study_name=name, directions=directions, load_if_exists=True)
    names = [goal.name for goal in goals]
    found = [direction.name.lower() for direction in study.directions]
    if found != directions or study.metric_names not in (None, names):
        raise IllegalInput(
            f"{without_password(url)} has another study called {name!r}, with other objectives; name another database"
        )
    if study.metric_names is None:
        study.set_metric_names(names)
    return study


def _trial(
    optuna: Any, trial: Trial, space: Space | None, objectives: Sequence[Objective], facts: dict[str, Any]
) -> Any:
    metrics = trial.observation.metrics if trial.observation is not None else {}
    finished = trial.state == "finished"
    limits = [limit for limit in objectives if limit.bound is not None and limit.name in metrics]
    return optuna.trial.create_trial(
        state=optuna.trial.TrialState.COMPLETE if finished else optuna.trial.TrialState.FAIL,
        values=[metrics[goal.name] for goal in goals_of(objectives)] if finished else None,
        constraints={str(limit): violation(limit, metrics[limit.name]) for limit in limits},
        user_attrs=facts,
        **_parameters(optuna, trial, space),
    )


def _parameters(optuna: Any, trial: Trial, space: Space | None) -> dict[str, Any]:
    if trial.request.design is None or space is None:  # a space in a file of the user's own is not opened
        return {"params": {}, "distributions": {}}
    options = dict(_options(space.root))
    taken = {slot.name: options[slot.name][index] for slot, index in decompose(space.root, trial.request.design)}
    return {
        "params": {name.lstrip("."): value for name, value in taken.items()},
        "distributions": {name.lstrip("."): _distribution(optuna, options[name]) for name in taken},
    }


def _options(part: Combinator[Any], name: str = "") -> Iterator[tuple[str, tuple[Any, ...]]]:
    """List what can be taken in each slot, by the name that `search.categorical` gives it."""
    options = part.own_options or ()
    yield name + part.OWN, tuple(str(option) if isinstance(option, tuple) else option for option in options)
    for step, inner in part.inner_parts():
        yield from _options(inner, name + step)


def _distribution(optuna: Any, options: tuple[Any, ...]) -> Any:
    """Give integers with equal steps as such, so that plots have an axis for them, and all else as categories."""
    if all(type(option) is int for option in options):
        low, high, step = min(options), max(options), abs(options[1] - options[0])
        if sorted(options) == [*range(low, high + 1, step)]:
            return optuna.distributions.IntDistribution(low, high, step=step)
    return optuna.distributions.CategoricalDistribution(options)


def _times(events: Sequence[Event]) -> dict[int, tuple[datetime, datetime]]:
    """Give, for each trial with an outcome, when the worker that ended it began, and when it ended."""
    began: dict[int, float] = {}
    times = {}
    for event in events:
        if event.kind == "claimed" and event.number is not None:
            began[event.number] = event.at
        elif event.kind in ("told", "failed") and event.number is not None:
            times[event.number] = (datetime.fromtimestamp(began[event.number]), datetime.fromtimestamp(event.at))
    return times


@contextmanager
def _quiet(optuna: Any) -> Iterator[None]:
    """Keep Optuna from announcing the study and from warning of what it calls experimental."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            yield
    finally:
        optuna.logging.set_verbosity(before)


@contextmanager
def _database_faults(target: str) -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        raise IllegalInput(f"cannot write to {without_password(target)}: {error}") from error
    except SQLAlchemyError as error:
        reason = " ".join(str(getattr(error, "orig", None) or error).split())
        raise IllegalInput(f"cannot write to {without_password(target)}: {reason}") from error
