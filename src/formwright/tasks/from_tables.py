"""Make a task of tables whose labels nobody described: learn what they mean, and divide the rows."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from formwright.core.errors import IllegalInput
from formwright.tasks.divide import BY_CLASS, SEED, divide, divide_by_class, hold_out
from formwright.tasks.labels import LabelKind, Labelling, learn_labels
from formwright.tasks.rows import Splits, TextRows
from formwright.tasks.tables import Table
from formwright.tasks.task import Task


@dataclass(frozen=True)
class Found:
    """The meaning of labels, and all rows."""

    labelling: Labelling
    splits: Splits[TextRows]


def find_rows(tables: Mapping[str, Table], kind: LabelKind | None, official_dev: bool) -> Found:
    """Turn tables named train, and where there are any validation and test, into splits.

    Classes are those of the training table. What is missing is divided off: validation and test from training,
    validation from training, or the test from validation, unless `official_dev` keeps validation whole.
    """
    labelling = learn_labels(tables["train"], kind)
    rows = {name: labelling.rows(table) for name, table in tables.items()}
    if not any(text.strip() for row in rows["train"].texts for text in row):
        raise IllegalInput(f"all texts of {tables['train'].where} are empty; name another column of text")
    if official_dev and "validation" not in rows:
        raise IllegalInput(f"{tables['train'].where} comes without a validation set, so none can be kept whole")
    return Found(labelling, _divided(rows, official_dev, by_class=labelling.kind != "regression"))


def _divided(rows: Mapping[str, TextRows], official_dev: bool, by_class: bool) -> Splits[TextRows]:
    train, validation, test = rows["train"], rows.get("validation"), rows.get("test")
    deal, how = (divide_by_class, BY_CLASS) if by_class else (divide, "")
    if validation is not None and test is not None:
        return Splits(train, validation, test, division="train, validation and test as they came")
    if validation is not None:
        return hold_out(train, validation, "validation set", validation.source, official_dev, by_class)
    if test is not None:
        division = f"the training set of {len(train):,} rows, divided 90/10 by seed {SEED} into train and validation"
        kept, validation = deal(train, (90, 10), train.source)
        return Splits(kept, validation, test, division=division + how)
    division = f"all {len(train):,} rows, divided 80/10/10 by seed {SEED}"
    return Splits(*deal(train, (80, 10, 10), train.source), division=division + how)


def text_task(name: str, source: Callable[[], Splits[TextRows]], found: Found, about: str) -> Task:
    """Make the task: accuracy for classes, with F1 where there are two; Pearson and Spearman for scores."""
    labels = found.labelling.names
    scores = found.labelling.kind == "regression"
    metrics = ("pearson", "spearman") if scores else ("accuracy", "f1") if len(labels) == 2 else ("accuracy",)
    chance = 0.0 if scores else _share_of_the_commonest(found.splits)
    return Task(name, found.labelling.kind, metrics[0], source, metrics, labels, chance, about)


def _share_of_the_commonest(splits: Splits[TextRows]) -> float:
    """Give the accuracy, in validation, of always answering what is most common in training."""
    commonest = Counter(splits.train.labels).most_common(1)[0][0]
    return splits.validation.labels.count(commonest) / len(splits.validation)
