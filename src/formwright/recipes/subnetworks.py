"""What recipes with shared weights have in common: their space, where they start, limits, a search and delivery."""

import inspect
import math
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from os import PathLike
from typing import Any

from formwright.arch.embeddings import Embedding, PatchEmbedding
from formwright.core.errors import IllegalInput
from formwright.core.options import Stage
from formwright.core.rng import derive
from formwright.pipeline.deliver import Deliver
from formwright.pipeline.pipeline import Pipeline
from formwright.pipeline.search import Search
from formwright.pipeline.shared_evaluator import SharedSubnetworks
from formwright.pipeline.task_choice import TaskChoice
from formwright.pipeline.train_shared import TrainShared
from formwright.search import searcher
from formwright.search.searchers import SearcherPart
from formwright.space.zoo import SPACES
from formwright.study.stop import Stop
from formwright.tasks.kind import kind_of

_NANO = ("autoformer-nano", "autoformer-nano-28", "autoformer-nano-32")  # for pictures, the smallest ones first
OF_PICTURES = (  # what the option `space` of recipes for pictures means
    "name of a space, FILE.py:NAME, or a stage that makes it; null: the small AutoFormer space that fits the task's "
    "pictures best"
)


def chosen_space(space: Any, task: TaskChoice) -> Any:
    """Give the space that the user chose, or else the name of the small space that fits the task's pictures best.

    That is the one that loses the fewest channels, then the fewest pixels. To find it the task is loaded, so that the
    pipeline names the space wherever it is shown, kept or run. Where none fits, the smallest is given, and the check of
    the run says why it does not.
    """
    if space is not None:
        return space
    loaded = task.load()
    kind, losses = kind_of(loaded), dict[str, tuple[int, ...]]()
    if kind.reads != PatchEmbedding.TYPE:
        raise IllegalInput(
            f"the spaces of this recipe read pictures, and the task {loaded.name} has none: name a space whose designs "
            "read its rows, as in `formwright search SPACE --recipe ...` (`formwright list spaces` lists them)"
        )
    rows = loaded.search_view().train
    for name in _NANO:
        designs = SPACES.get(name)
        embedding = designs.card(designs.sample(derive(0, "fitting"))).stacks[0].embedding
        if not (kind.check is not None and kind.check(rows, embedding)):
            losses[name] = _loss(rows, embedding)
    return min(losses, key=losses.__getitem__, default=_NANO[0])


def _loss(rows: Any, embedding: Embedding) -> tuple[int, ...]:
    """Count the channels and the pixels of a side that a design loses of pictures, and then the numbers it reads."""
    assert isinstance(embedding, PatchEmbedding)
    side, channels = getattr(rows, "usual_size", (0, 0))  # arrays have the size that a design reads
    lost = max(0, channels - embedding.channels), max(0, side - embedding.image)
    return *lost, embedding.channels * embedding.image**2


def with_start(compose: Callable[..., Pipeline]) -> Callable[..., Pipeline]:
    """Give a recipe the option `start`: the folder of a model, its name on the hub, or a stage that makes one.

    The first super-network of the recipe starts with its weights, where tensors fit.
    """

    @wraps(compose)
    def composed(*arguments: Any, start: str | Stage | None = None, **options: Any) -> Pipeline:
        start = str(start) if isinstance(start, PathLike) else start
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
    return f"latency_ms>={0.85 * latency:.6g}", f"latency_ms<={1.1 * latency:.6g}"


def search_subnetworks(
    shared: TrainShared,
    trials: int,
    limits: tuple[str, ...] = (),
    *,
    objectives: tuple[str, ...] = (),
    by: SearcherPart | None = None,
    before: tuple[Stage, ...] = (),
    races: bool = True,
    minimise: tuple[str, ...] = (),
    **delivery: Any,
) -> Pipeline:
    """Search designs whose weights a stage trained, by evolution (NSGA-II) or `by` another searcher, and deliver them.

    `before` are the stages that the training needs. With `races`, designs that a known one significantly beats are
    judged by some of the rows only. Without `objectives` the goals are the task's own and the costs in `minimise`.
    `delivery` are options of `Deliver`.
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
        minimise=minimise,
    )
    return Pipeline(*before, shared, search, Deliver(search, **delivery))
