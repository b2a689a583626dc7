"""What recipes with shared weights have in common: where they start, limits, a search and delivery."""

import inspect
import math
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Any

from formwright.core.errors import IllegalInput
from formwright.core.options import Stage
from formwright.pipeline.deliver import Deliver
from formwright.pipeline.pipeline import Pipeline
from formwright.pipeline.search import Search
from formwright.pipeline.shared_evaluator import SharedSubnetworks
from formwright.pipeline.train_shared import TrainShared
from formwright.search import searcher
from formwright.search.searchers import SearcherPart
from formwright.study.stop import Stop


def with_start(compose: Callable[..., Pipeline]) -> Callable[..., Pipeline]:
    """Give a recipe the option `start`: the folder of a model, its name on the hub, or a stage that makes one.

    The first super-network of the recipe starts with its weights, where tensors fit.
    """

    @wraps(compose)
    def composed(*arguments: Any, start: str | Stage | None = None, **options: Any) -> Pipeline:
        if start is not None and not isinstance(start, str | Stage):
            raise IllegalInput(f"start is the folder of a model, its name on the hub, or a stage, not {start!r}")
        made = compose(*arguments, **options)
        first = made.of_kind(TrainShared)[0]
        return made if start is None else made.changed({made.name_of(first): replace(first, start=start)})

    own = inspect.signature(compose)
    added = inspect.signature(composed, follow_wrapped=False).parameters["start"]
    composed.__signature__ = own.replace(parameters=[*own.parameters.values(), added])  # type: ignore[attr-defined]
    return composed


def latency_band(latency: float | None) -> tuple[str, ...]:
    """Give the limits of a design whose latency is about as wanted: from 0.85 to 1.1 of it, in milliseconds."""
    if latency is None:
        return ()
    if not 0 < latency < math.inf:  # NaN too: no design would keep the limits
        raise IllegalInput(f"latency is a number of milliseconds above 0, not {latency!r}")
    return f"latency_ms>={0.85 * latency}", f"latency_ms<={1.1 * latency}"


def search_subnetworks(
    shared: TrainShared,
    trials: int,
    limits: tuple[str, ...] = (),
    *,
    objectives: tuple[str, ...] = (),
    by: SearcherPart | None = None,
    before: tuple[Stage, ...] = (),
    races: bool = True,
    **delivery: Any,
) -> Pipeline:
    """Search designs whose weights a stage trained, by evolution (NSGA-II) or `by` another searcher, and deliver them.

    `before` are the stages that the training needs. With `races`, designs that a known one significantly beats are
    judged by some of the rows only. `delivery` are options of `Deliver`.
    """
    search = Search(
        shared.space,
        shared.task,
        objectives,
        limits,
        by or searcher("nsga2"),
        SharedSubnetworks(shared, races=races),
        shared.training,
        Stop(trials=trials),
        seed=shared.seed,
    )
    return Pipeline(*before, shared, search, Deliver(search, **delivery))
