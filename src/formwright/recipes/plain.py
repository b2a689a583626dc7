"""The search that a user has who names no published method."""

from typing import Any

from formwright.pipeline.deliver import Deliver
from formwright.pipeline.pipeline import Pipeline
from formwright.pipeline.search import Search
from formwright.pipeline.task_choice import TaskChoice
from formwright.recipes.recipe import recipe
from formwright.study.stop import Stop


@recipe("plain", "search a space with the default searcher for it, training every design from scratch")
def plain(task: TaskChoice, *, space: Any = "flexibert-nano", trials: int = 30, seed: int = 0) -> Pipeline:
    """Search a space for the design that is best at a task, and deliver it next to a plain baseline.

    The searcher is BOSHNAS or a forest where all designs can be listed, regularised evolution elsewhere, and NSGA-II
    for several goals; docs/methods/flexibert.md says what that choice rests on.
    """
    search = Search(space, task, stop=Stop(trials=trials), seed=seed)
    return Pipeline(search, Deliver(search))
