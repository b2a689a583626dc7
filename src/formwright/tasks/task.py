"""A task: the question, its metrics, its rows, and warnings about them."""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from formwright.core.remember import remember, remembers
from formwright.tasks.rows import AnyRows, Origin, Splits, TextRows, View

_FEWEST = 5  # rows that a class should have
_NAMED = 5  # classes named in a warning
_MISSING = ("", "nan", "none", "null", "n/a", "#n/a", "<na>")  # how programs write a value that is not there


@dataclass(frozen=True)
class DataWarning:
    """A possible problem of the rows: its kind, the number of rows (or classes), and a message."""

    kind: str
    count: int
    message: str


def data_warnings(splits: Splits[Any], labels: Sequence[str]) -> tuple[DataWarning, ...]:
    """Return one warning for each kind of problem; rows that come from no file, and those without labels, have none."""
    named = {"train": splits.train, "validation": splits.validation, "test": splits.test}
    parts = {name: rows for name, rows in named.items() if getattr(rows, "source", "") and _has_inputs(rows)}
    if "train" not in parts:
        return ()
    whole = [texts for rows in parts.values() if isinstance(rows, TextRows) for texts in rows.texts]
    empty = sum(not all(text.strip() for text in texts) for texts in whole)
    counts = class_counts(parts.values(), len(labels)) if labels else Counter[int]()
    found = [
        _shared_rows(parts),
        _contradictions(parts.values()),
        DataWarning("empty-texts", empty, f"{empty:,} of {len(whole):,} rows have an empty text"),
        *_odd_classes(counts, labels),
    ]
    return tuple(warning for warning in found if warning.count)


def _has_inputs(rows: Any) -> bool:
    return hasattr(type(rows), "contents")  # the property itself may hash all pictures


def _shared_rows(parts: dict[str, Any]) -> DataWarning:
    """Count held-out rows that are in train too, and test rows that are in validation."""
    known, found = dict[str, set[Hashable]](), list[tuple[int, str]]()
    for name, rows in parts.items():
        contents = rows.contents
        for earlier, inputs in known.items():
            shared = sum(one in inputs for one in contents)
            if shared:
                sentence = f"the {rows.UNIT} of {shared:,} of {len(rows):,} {name} rows are also in {earlier}"
                found.append((shared, sentence))
        known[name] = set(contents)
    message = "; ".join(sentence for _, sentence in found) + ": scores on them are too optimistic"
    return DataWarning("shared-rows", sum(count for count, _ in found), message)


def _contradictions(parts: Collection[Any]) -> DataWarning:
    given: dict[Hashable, Counter[Hashable]] = {}
    for rows in parts:
        answers = getattr(rows, "answers", rows.labels)
        for inputs, answer in () if answers is None else zip(rows.contents, answers, strict=True):
            given.setdefault(inputs, Counter())[answer] += 1
    several = [answers for answers in given.values() if len(answers) > 1]
    count = sum(answers.total() for answers in several)
    unit = next(rows.UNIT for rows in parts)
    message = f"{count:,} rows contradict each other: {len(several):,} {unit} occur with different labels"
    return DataWarning("contradictory-labels", count, message)


def _odd_classes(counts: Counter[int], labels: Sequence[str]) -> tuple[DataWarning, DataWarning]:
    """Count the classes with few rows, and the rows of a class that looks like a missing value."""
    rare = [f"{name!r} ({counts[place]:,})" for place, name in enumerate(labels) if counts[place] < _FEWEST]
    few = f"{len(rare):,} of {len(labels):,} classes occur fewer than {_FEWEST} times: {_some(rare)}"
    missing = [place for place, name in enumerate(labels) if name.strip().lower() in _MISSING]
    count, names = sum(counts[place] for place in missing), _some([repr(labels[place]) for place in missing])
    message = f"the class {names} ({count:,}) looks like a missing value: remove these rows, or rename the class"
    return DataWarning("rare-classes", len(rare), few), DataWarning("missing-value-class", count, message)


def class_counts(parts: Iterable[Any], classes: int) -> Counter[int]:
    """Count the rows of each class; a row of several labels counts for each of them."""
    found = Counter[int]()
    for rows in parts:
        for label, times in Counter(rows.labels if isinstance(rows.labels, tuple) else rows.labels.tolist()).items():
            has = [place for place in range(classes) if label[place]] if isinstance(label, tuple) else [int(label)]
            found.update(dict.fromkeys(has, times))
    return found


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else "")


@remembers
@dataclass(frozen=True)
class Task:
    """One question about one set of rows.

    `kind` is a name in `formwright.tasks.kind.KINDS`. `metric` decides; `metrics` are all that are reported, by their
    names in `formwright.tasks.metrics`. `chance` is the value of `metric` for answers that ignore the input, None if
    that depends on the vocabulary. `splits` makes the rows when they are first needed; it must be a function or a
    frozen dataclass that another process can import. It makes the test rows too, and is private to this package: others
    use `search_view`. `load` are the arguments of `load_task` that recreate the task, empty if it was made otherwise.
    `guess` says which kind of task was guessed from the labels, and why; empty if the kind was given.
    """

    name: str
    kind: str
    metric: str
    splits: Callable[[], Splits[Any]] = field(repr=False)
    metrics: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    chance: float | None = None
    about: str = ""
    load: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)
    guess: str = ""

    def __post_init__(self) -> None:
        if self.metric not in self.metrics:
            object.__setattr__(self, "metrics", (self.metric, *self.metrics))

    def search_view(self) -> View[Any]:
        """Return training and validation rows, made on the first call and cached; test rows are not reachable."""
        return _made(self).view

    @property
    def division(self) -> str:
        """Describe how the splits were made; loads the rows. Empty if the source provided all splits."""
        return _made(self).division

    @property
    def warnings(self) -> tuple[DataWarning, ...]:
        """Return warnings about the rows; loads them. Generated rows are not checked."""
        return data_warnings(_made(self), self.labels)

    @property
    def origins(self) -> dict[str, Origin]:
        """Return the file and row positions of each split (`train`, `validation`, `test`), without showing test rows.

        Loads the rows. Splits that came from no table, such as those of builtin tasks, are left out.
        """
        return _made(self).origins

    @property
    def has_test(self) -> bool:
        """Return whether there are test rows, without showing them; makes the rows."""
        return _made(self).test is not None


@remember
def _made(task: Task) -> Splits[Any]:
    return task.splits()


@remember
def contents(task: Task) -> dict[str, Any]:
    """Return the number of rows and the digest of each split, and the digest of the labels, as JSON data.

    Test rows are only counted and hashed; their entry is None if there are none.
    """
    made = _made(task)
    splits = {"training rows": made.train, "validation rows": made.validation, "test rows": made.test}
    entries = {name: None if rows is None else {_ROWS: len(rows), _SHA: rows.digest} for name, rows in splits.items()}
    return {**entries, "labels": hashlib.sha256(json.dumps([task.kind, task.labels]).encode()).hexdigest()}


_ROWS, _SHA = "rows", "sha256"


def changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Describe the differences between two results of `contents`, with the numbers of rows."""
    found = []
    for name, entry in now.items():
        both = [one if isinstance(one, Mapping) else {_SHA: one} for one in (before.get(name), entry)]
        if both[0].get(_SHA) == both[1].get(_SHA):
            continue
        first, second = ("none" if (rows := one.get(_ROWS)) is None else f"{rows:,}" for one in both)
        if first != second:
            found.append(f"the {name} ({first} before, {second} now)")
        else:
            found.append(f"the {name}" + ("" if first == "none" else f" ({first} before and now, with other content)"))
    return found


R = TypeVar("R", bound=AnyRows)


def shortened(task: Task, number: int) -> Task:
    """Return the task with only the first `number` training rows; validation and test are unchanged."""
    return replace(task, splits=_FirstRows(task, number), load={"name": task.name, **task.load, "rows": number})


def first_rows(rows: R, number: int) -> R:
    """Return the first `number` rows."""
    return some_rows(rows, slice(number))


def some_rows(rows: R, which: slice) -> R:
    """Return the rows of a slice."""
    return rows.take(range(len(rows))[which])


@dataclass(frozen=True)
class _FirstRows:
    """Make the rows of a task, and keep the first ones for training."""

    task: Task
    number: int

    def __call__(self) -> Splits[Any]:
        whole = _made(self.task)
        return replace(whole, train=first_rows(whole.train, self.number))
