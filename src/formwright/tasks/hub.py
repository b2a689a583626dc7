"""Tasks from the Hugging Face hub, through the `datasets` library."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from formwright.core.errors import IllegalInput
from formwright.core.extras import need
from formwright.core.remember import remember, remembers
from formwright.tasks.kind import KINDS, own_kinds
from formwright.tasks.labels import label_columns
from formwright.tasks.rows import Splits, TextRows
from formwright.tasks.tables import Table, missing, written
from formwright.tasks.task import Task
from formwright.tasks.text_files import Faults
from formwright.tasks.user_tables import Found, find_rows, text_task

_VALIDATION = ("validation", "validation_matched", "valid", "dev")
_ELSE = "save its splits as CSV or JSON Lines files in a folder, and name that folder as the task"


@dataclass(frozen=True)
class Dataset:
    """The splits of a dataset by their names, and what to call it."""

    name: str
    splits: Mapping[str, Any]


@remembers
@dataclass(frozen=True)
class HubRows:
    """Download the splits of a dataset. Without `text`, all text columns are used."""

    name: str
    config: str | None
    text: tuple[str, ...]
    label: str
    official_dev: bool
    kind: str | None = None

    def __call__(self) -> Splits[TextRows]:
        """Return all rows, fetched on the first call in a process."""
        return _found(self).splits


def hub_task(
    name: str, text: tuple[str, ...] = (), label: str = "label", official_dev: bool = False, kind: str | None = None
) -> Task:
    """Make a task of the dataset `owner/name` or `owner/name:config`.

    Without `text`, the string columns are used if there are one or two. Labels are read as by `own_task`; a feature
    that is a list of classes makes a multi-label task. Kinds whose rows are more than texts with labels are refused.
    """
    if kind is not None and not (wanted := KINDS.get(kind)).in_hub:
        readable = ", ".join(short for short, one in own_kinds().items() if one.in_hub)
        raise IllegalInput(
            f"the Hugging Face dataset {name} can be read as {readable}, not as {wanted.short or wanted.name}; save "
            f"its splits as files that hold {wanted.about} (docs/tasks.md), and name their folder as the task"
        )
    dataset, _, config = name.partition(":")
    source = HubRows(dataset, config or None, text, label, official_dev, kind)
    return text_task(name, source, _found(source), f"column {label} of the Hugging Face dataset {name}")


def hub_tables(name: str, config: str | None, otherwise: str) -> Dataset:
    """Download a dataset with all its splits; `otherwise` is the alternative that the error message suggests."""
    datasets = need("datasets", "hub")
    called = f"{name}:{config}" if config else name
    try:
        return Dataset(called, datasets.load_dataset(name, config))
    except Exception as error:  # a download fails in more ways than the library documents
        reason = (str(error).splitlines() or [""])[0]
        raise IllegalInput(
            f"cannot fetch the Hugging Face dataset {called}: {type(error).__name__}: {reason}. "
            f"Check the name and the network; or {otherwise}."
        ) from error


def hub_table(dataset: Dataset, split: str, text: Sequence[str], *label: str) -> Table:
    """Take columns of one split; classes are written by their names."""
    rows, where = split_of(dataset, split, (*text, *label))
    # the names of the classes of a feature, or of the lists that it holds
    names = [getattr(getattr(rows.features[name], "feature", rows.features[name]), "names", None) for name in label]
    labels = [[_named(value, known) for value in rows[name]] for name, known in zip(label, names, strict=True)]
    faults, texts = Faults(where, "row"), []
    for column in text:
        for number, value in enumerate(rows[column], start=1):
            if value is None or isinstance(value, list | dict):
                faults.add(number, f"no text in {column!r}; expected some")
        texts.append([written(value) for value in rows[column]])
        faults.end()
    return Table(where, tuple(zip(*texts, *labels, strict=True)), tuple(range(1, len(labels[0]) + 1)), unit="row")


def split_of(dataset: Dataset, split: str, columns: Sequence[str]) -> tuple[Any, str]:
    """Return a split of a dataset and what to call it; raise if it or one of the columns is missing."""
    where = f"split {split} of {dataset.name}"
    if split not in dataset.splits:
        raise IllegalInput(f"{dataset.name} has no split {split!r}; it has {', '.join(dataset.splits) or 'none'}")
    rows = dataset.splits[split]
    for column in columns:
        if column not in rows.features:
            raise IllegalInput(f"{where}: {missing(column, list(rows.features))}")
    return rows, where


def _named(value: Any, names: Sequence[str] | None) -> str:
    if isinstance(value, list):
        return written([_named(one, names) for one in value])
    if names is None:
        return "" if value is None else written(value)
    return names[value] if isinstance(value, int) and 0 <= value < len(names) else ""


@remember
def _found(source: HubRows) -> Found:
    dataset = hub_tables(source.name, source.config, _ELSE)
    held = next((name for name in _VALIDATION if name in dataset.splits), None)
    splits = {"train": "train", "validation": held, "test": "test" if "test" in dataset.splits else None}
    labels = label_columns(source.label)
    text = source.text or _text_columns(dataset, labels)
    tables = {role: hub_table(dataset, split, text, *labels) for role, split in splits.items() if split}
    if "test" in tables and not all(row[-1] for row in tables["test"].rows):
        del tables["test"]  # a test without answers
    return find_rows(tables, source.kind, source.official_dev, labels)


def _text_columns(dataset: Dataset, labels: Sequence[str]) -> tuple[str, ...]:
    features = next(iter(dataset.splits.values())).features
    texts = [name for name, feature in features.items() if not hasattr(feature, "names") and name not in labels]
    found = tuple(name for name in texts if getattr(features[name], "dtype", None) in ("string", "large_string"))
    if not 1 <= len(found) <= 2:
        raise IllegalInput(f"{dataset.name} has the columns {', '.join(features)}; name one or two of them with --text")
    return found
