"""Make a task of tables whose labels nobody described: learn what they mean, and divide the rows."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from formwright.core.errors import IllegalInput
from formwright.tasks.divide import BY_CLASS, SEED, divide, divide_by_class, hold_out
from formwright.tasks.label_lists import gathered
from formwright.tasks.labels import LabelKind, Labelling, learn_labels
from formwright.tasks.multi_label import best_constant, micro_f1
from formwright.tasks.rows import Splits, TextRows
from formwright.tasks.tables import Table
from formwright.tasks.task import Task


@dataclass(frozen=True)
class Found:
    """The meaning of labels, and all rows."""

    labelling: Labelling
    splits: Splits[TextRows]


def find_rows(
    tables: Mapping[str, Table], kind: LabelKind | None, official_dev: bool, columns: Sequence[str] = ()
) -> Found:
    """Turn tables named train, and where there are any validation and test, into splits.

    The last column holds the labels; where `columns` are several, that many last ones do, each of 0 and 1 for one
    label. Classes are those of the training table. What is missing is divided off: validation and test from training,
    validation from training, or the test from validation, unless `official_dev` keeps validation whole.
    """
    if len(columns) > 1:
        tables = {name: gathered(table, columns) for name, table in tables.items()}
    labelling = learn_labels(tables["train"], kind, columns)
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
    """Make the task.

    Metrics are accuracy for classes, with F1 where there are two; micro-F1, macro-F1 and subset accuracy for several
    labels; Pearson and Spearman for scores.
    """
    labelling = found.labelling
    metrics = _METRICS[labelling.kind]
    if labelling.kind == "sequence-classification" and len(labelling.names) == 2:
        metrics = (*metrics, "f1")
    chance, names = _chance(found), labelling.names
    task = Task(name, labelling.kind, metrics[0], source, metrics, names, chance, about)
    return replace(task, guess=labelling.guess)


_METRICS: dict[LabelKind, tuple[str, ...]] = {
    "sequence-classification": ("accuracy",),
    "multi-label-classification": ("micro-f1", "macro-f1", "subset-accuracy"),
    "regression": ("pearson", "spearman"),
}


def _chance(found: Found) -> float:
    """Give the score, in validation, of always answering what is best in training: the commonest class or labels."""
    train, validation = found.splits.train.labels, found.splits.validation.labels
    if found.labelling.kind == "regression":
        return 0.0
    if found.labelling.kind == "sequence-classification":
        commonest = Counter(train).most_common(1)[0][0]
        return validation.count(commonest) / len(validation)
    return micro_f1([best_constant(train)] * len(validation), validation)
