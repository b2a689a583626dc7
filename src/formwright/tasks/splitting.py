"""Divide rows into splits by a fixed seed."""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from itertools import accumulate
from typing import Any, ClassVar, Protocol, Self, TypeVar

from formwright.core.errors import IllegalInput
from formwright.core.rng import derive
from formwright.tasks.draw import shuffled
from formwright.tasks.rows import Label, Splits

SEED = 0
BY_CLASS = ", stratified by class"


class Divisible(Protocol):
    """Labelled rows that can be divided: rows with the same one of `contents` stay together."""

    UNIT: ClassVar[str]

    def __len__(self) -> int: ...
    @property
    def digest(self) -> str: ...
    @property
    def shown(self) -> Mapping[str, Sequence[Any]]: ...
    @property
    def labels(self) -> Any: ...
    @property
    def contents(self) -> Sequence[Hashable]: ...
    @property
    def numbers(self) -> tuple[int, ...]: ...
    @property
    def source(self) -> str: ...
    def take(self, places: Sequence[int]) -> Self: ...


_ENOUGH = 8  # different contents, of which every part gets one
D = TypeVar("D", bound=Divisible)


def divided(rows: Mapping[str, D], official_dev: bool, by_class: bool) -> Splits[D]:
    """Make splits of rows named train and, if present, validation and test.

    Missing splits are divided off: validation and test from training, or the test from validation, unless
    `official_dev` keeps validation whole.
    """
    train, validation, test = rows["train"], rows.get("validation"), rows.get("test")
    deal, how = (divide_by_class, BY_CLASS) if by_class else (divide, "")
    if official_dev and validation is None:
        raise IllegalInput(f"{train.source} comes without a validation set, so none can be kept whole")
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


def divide(rows: D, shares: Sequence[int], where: str) -> list[D]:
    """Divide rows at random, by a fixed seed, into parts of about the given shares.

    Rows of the same content stay together, so that no answer leaks from one part to another. Parts keep the order of
    rows.
    """
    groups = _groups(rows)
    ends = [len(rows) * share / sum(shares) for share in accumulate(shares)]
    parts: list[list[int]] = [[] for _ in shares]
    part = dealt = 0
    for place in shuffled(derive(SEED, "division"), len(groups)):
        while dealt >= ends[part]:
            part += 1
        parts[part] += groups[place]
        dealt += len(groups[place])
    return _taken(rows, parts, groups, shares, where)


def divide_by_class(rows: D, shares: Sequence[int], where: str, train_first: bool = True) -> list[D]:
    """Divide as `divide` does, stratified by class.

    Groups of rows with the same content are assigned class by class, the rarest first, each to the part that lacks
    most of its share. With `train_first` the first part gets the first group of every class, however rare, so that all
    classes can be learned, unless another part would then stay empty. A group counts for its rarest class.
    """
    groups = _groups(rows)
    labels = [_classes(label) for label in getattr(rows.labels, "tolist", lambda: rows.labels)()]
    counts = Counter(label for several in labels for label in several)
    classes = [sorted({label for row in group for label in labels[row]}) for group in groups]
    order = shuffled(derive(SEED, "division"), len(groups))
    order.sort(key=lambda group: min(((counts[label], label) for label in classes[group]), default=(len(rows), -1)))
    parts: list[list[int]] = [[] for _ in shares]  # groups
    held, learned, dealt = [0] * len(shares), set[int | float](), 0
    for group in order:
        dealt += len(groups[group])
        lacks = [share / sum(shares) * dealt - many for share, many in zip(shares, held, strict=True)]
        new = train_first and not learned.issuperset(classes[group])
        part = 0 if new else lacks.index(max(lacks))
        parts[part].append(group)
        held[part] += len(groups[group])
        if part == 0:
            learned.update(classes[group])
    if train_first and not all(parts):
        return divide_by_class(rows, shares, where, train_first=False)
    if len(groups) >= _ENOUGH:  # where a few contents have most rows, a small part may have got none
        for empty in (part for part in parts if not part):
            most = max(parts, key=len)
            empty.append(most.pop(most.index(min(most, key=lambda group: len(groups[group])))))
    return _taken(rows, [[row for group in part for row in groups[group]] for part in parts], groups, shares, where)


def _groups(rows: Divisible) -> list[list[int]]:
    same: dict[Hashable, list[int]] = {}
    for row, content in enumerate(rows.contents):
        same.setdefault(content, []).append(row)
    return list(same.values())


def _classes(label: Label) -> tuple[int | float, ...]:
    """Return the classes of a label; a multi-label row may have several or none."""
    if isinstance(label, tuple):
        return tuple(place for place, has in enumerate(label) if has)
    return (label,)


def _taken(rows: D, parts: list[list[int]], groups: list[list[int]], shares: Sequence[int], where: str) -> list[D]:
    if not all(parts):
        most, unit = max(map(len, groups), default=0), rows.UNIT
        same = f" ({most:,} of {len(rows):,} rows have the same one)" if most > 1 else ""
        raise IllegalInput(
            f"{where} has {len(groups)} different {unit}{same}, too few to be divided "
            f"{'/'.join(map(str, shares))}; give more rows, or a folder with train, validation and test"
        )
    return [rows.take(sorted(part)) for part in parts]


def hold_out(train: D, held: D, what: str, where: str, whole: bool, by_class: bool = False) -> Splits[D]:
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
