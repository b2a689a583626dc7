"""A task: what is asked, how the answer is judged, and the rows a search may see."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from formwright.core.remember import remember, remembers
from formwright.tasks.data_warnings import DataWarning, data_warnings
from formwright.tasks.rows import Origin, Splits, View

Kind = Literal[
    "sequence-classification",
    "multi-label-classification",
    "regression",
    "span-extraction",
    "masked-lm",
    "causal-lm",
    "seq2seq-lm",
    "image-classification",
]


@remembers
@dataclass(frozen=True)
class Task:
    """One question about one set of rows.

    `metric` decides; `metrics` are all that are reported, by their names in `formwright.tasks.metrics`. `chance` is the
    value of `metric` for answers that ignore the input, None where that depends on the vocabulary. `splits` makes the
    rows when they are first needed; it must be a function, or a frozen dataclass, that another process can import, so
    that tasks travel. It makes the test rows too, and is for this package alone: others ask for `search_view`. `load`
    are the arguments of `load_task` that give the task again, empty where it came otherwise. `guess` says what kind of
    task was guessed from the labels, and why; it is empty where nothing had to be guessed.
    """

    name: str
    kind: Kind
    metric: str
    splits: Callable[[], Splits[Any]] = field(repr=False)
    metrics: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    chance: float | None = None
    about: str = ""
    load: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)
    guess: str = ""

    def __post_init__(self) -> None:
        """Report the deciding metric, whatever else is reported."""
        if self.metric not in self.metrics:
            object.__setattr__(self, "metrics", (self.metric, *self.metrics))

    def search_view(self) -> View[Any]:
        """Return training and validation rows, made on the first call and kept; there is no way to the test rows."""
        return _made(self).view

    @property
    def division(self) -> str:
        """Say how the splits were divided, with their sizes; makes the rows. Empty where the source was divided."""
        return _made(self).division

    @property
    def warnings(self) -> tuple[DataWarning, ...]:
        """List what looks wrong with the rows; makes them. Generated rows are not looked at."""
        return _looked_at(self)

    @property
    def origins(self) -> dict[str, Origin]:
        """Say which rows of which file each split holds (`train`, `validation`, `test`), without showing test rows.

        Makes the rows. A split whose rows came from no table, as those of builtin tasks, is left out.
        """
        return _made(self).origins

    @property
    def has_test(self) -> bool:
        """Say whether there are test rows, without showing them; makes the rows."""
        return _made(self).test is not None


@remember
def _made(task: Task) -> Splits[Any]:
    return task.splits()


@remember
def _looked_at(task: Task) -> tuple[DataWarning, ...]:
    return data_warnings(_made(task), task.labels)
