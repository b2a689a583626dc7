"""Divide rows into splits by a fixed seed."""

from collections import Counter
from collections.abc import Sequence
from itertools import accumulate

from formwright.core.errors import IllegalInput
from formwright.core.rng import derive
from formwright.tasks.draw import shuffled
from formwright.tasks.rows import Label, Splits, TextRows

SEED = 0
BY_CLASS = ", stratified by class"


def divide(rows: TextRows, shares: Sequence[int], where: str) -> list[TextRows]:
    """Divide rows at random, by a fixed seed, into parts of about the given shares.

    Rows of the same text stay together, so that no answer leaks from one part to another. Parts keep the order of rows.
    """
    groups = _same_texts(rows)
    ends = [len(rows) * share / sum(shares) for share in accumulate(shares)]
    parts: list[list[int]] = [[] for _ in shares]
    part = dealt = 0
    for place in shuffled(derive(SEED, "division"), len(groups)):
        while dealt >= ends[part]:
            part += 1
        parts[part] += groups[place]
        dealt += len(groups[place])
    return _taken(rows, parts, groups, shares, where)


def divide_by_class(rows: TextRows, shares: Sequence[int], where: str, train_first: bool = True) -> list[TextRows]:
    """Divide as `divide` does, stratified by class.

    Groups of rows with the same text are assigned class by class, the rarest class first, each to the part that lacks
    most of its share. With `train_first` the first part gets the first group of every class, however rare, so that all
    classes can be learned, unless another part would then stay empty. A group counts for its rarest class.
    """
    groups = _same_texts(rows)
    counts = Counter(label for labels in map(_classes, rows.labels) for label in labels)
    classes = [sorted({label for row in group for label in _classes(rows.labels[row])}) for group in groups]
    order = shuffled(derive(SEED, "division"), len(groups))
    order.sort(key=lambda group: min(((counts[label], label) for label in classes[group]), default=(len(rows), -1)))
    parts: list[list[int]] = [[] for _ in shares]
    learned, dealt = set[int | float](), 0
    for group in order:
        dealt += len(groups[group])
        lacks = [share / sum(shares) * dealt - len(part) for share, part in zip(shares, parts, strict=True)]
        new = train_first and not learned.issuperset(classes[group])
        part = 0 if new else lacks.index(max(lacks))
        parts[part] += groups[group]
        if part == 0:
            learned.update(classes[group])
    if train_first and not all(parts):
        return divide_by_class(rows, shares, where, train_first=False)
    return _taken(rows, parts, groups, shares, where)


def _same_texts(rows: TextRows) -> list[list[int]]:
    same: dict[tuple[str, ...], list[int]] = {}
    for row, texts in enumerate(rows.texts):
        same.setdefault(texts, []).append(row)
    return list(same.values())


def _classes(label: Label) -> tuple[int | float, ...]:
    """Return the classes of a label; a multi-label row may have several or none."""
    if isinstance(label, tuple):
        return tuple(place for place, has in enumerate(label) if has)
    return (label,)


def _taken(
    rows: TextRows, parts: list[list[int]], groups: list[list[int]], shares: Sequence[int], where: str
) -> list[TextRows]:
    if not all(parts):
        most = max(map(len, groups), default=0)
        same_text = f" ({most:,} of {len(rows):,} rows have the same text)" if most > 1 else ""
        raise IllegalInput(
            f"{where} has {len(groups)} different texts{same_text}, too few to be divided "
            f"{'/'.join(map(str, shares))}; give more rows, or a folder with files for train, validation and test"
        )
    found = []
    for part in map(sorted, parts):
        texts, labels = tuple(rows.texts[place] for place in part), tuple(rows.labels[place] for place in part)
        numbers = tuple(rows.numbers[place] for place in part) if rows.numbers else tuple(part)
        found.append(TextRows(texts, labels, numbers=numbers, source=rows.source))
    return found


def hold_out(
    train: TextRows, held: TextRows, what: str, where: str, whole: bool, by_class: bool = False
) -> Splits[TextRows]:
    """Make splits of training rows and a held-out set: halved into validation and test, or `whole` for validation.

    `what` is the name of the set, such as `official dev set`, and `where` its source. `by_class` stratifies the halves;
    GLUE's dev sets are halved without, as they were for the published figures.
    """
    size = f"the {what} of {len(held):,} rows"
    if whole:
        return Splits(train, held, None, division=f"{size}, whole")
    division = f"{size}, halved by seed {SEED} into validation and test"
    if by_class:
        return Splits(train, *divide_by_class(held, (1, 1), where, train_first=False), division=division + BY_CLASS)
    return Splits(train, *divide(held, (1, 1), where), division=division)
