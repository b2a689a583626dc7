"""Look at the rows of a user's own data, and warn of what makes scores wrong or classes impossible to learn."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from formwright.tasks.rows import Label, Splits, TextRows

_FEWEST = 5  # rows that a class should have
_NAMED = 5  # classes named in a warning
_MISSING = ("", "nan", "none", "null", "n/a", "#n/a", "<na>")  # how programs write a value that is not there


@dataclass(frozen=True)
class DataWarning:
    """Something that looks wrong with the rows: what kind of thing, how many rows (or classes), and a sentence."""

    kind: str
    count: int
    message: str


def data_warnings(splits: Splits[Any], labels: Sequence[str]) -> tuple[DataWarning, ...]:
    """Warn once of each kind of thing that looks wrong; rows that come from no table are not looked at."""
    parts = {
        name: rows
        for name, rows in (("train", splits.train), ("validation", splits.validation), ("test", splits.test))
        if isinstance(rows, TextRows) and rows.source
    }
    if "train" not in parts:
        return ()
    looks = (_shared_rows(parts), _contradictions(parts), _empty_texts(parts))
    of_classes = (_rare_classes(parts, labels), _missing_values(parts, labels)) if labels else ()
    return tuple(warning for warning in (*looks, *of_classes) if warning is not None)


def _shared_rows(parts: dict[str, TextRows]) -> DataWarning | None:
    """Count held-out rows whose text is in train, and test rows whose text is in validation."""
    known, found = dict[str, set[tuple[str, ...]]](), list[tuple[int, str]]()
    for name, rows in parts.items():
        for earlier, texts in known.items():
            shared = sum(text in texts for text in rows.texts)
            if shared:
                found.append((shared, f"{shared:,} of {len(rows):,} {name} rows have a text that is also in {earlier}"))
        known[name] = set(rows.texts)
    if not found:
        return None
    told = "; ".join(sentence for _, sentence in found)
    return DataWarning("shared-rows", sum(count for count, _ in found), f"{told}: scores on them are too good")


def _contradictions(parts: dict[str, TextRows]) -> DataWarning | None:
    given: dict[tuple[str, ...], set[Label]] = {}
    for rows in parts.values():
        for texts, label in zip(rows.texts, rows.labels, strict=True):
            given.setdefault(texts, set()).add(label)
    several = {texts for texts, labels in given.items() if len(labels) > 1}
    if not several:
        return None
    count = sum(texts in several for rows in parts.values() for texts in rows.texts)
    message = f"{count:,} rows contradict each other: {len(several):,} texts occur with different labels"
    return DataWarning("contradictory-labels", count, message)


def _empty_texts(parts: dict[str, TextRows]) -> DataWarning | None:
    count = sum(not all(text.strip() for text in texts) for rows in parts.values() for texts in rows.texts)
    total = sum(map(len, parts.values()))
    return DataWarning("empty-texts", count, f"{count:,} of {total:,} rows have an empty text") if count else None


def _rare_classes(parts: dict[str, TextRows], labels: Sequence[str]) -> DataWarning | None:
    counts = class_counts(parts.values(), len(labels))
    rare = [f"{name!r} ({counts[place]:,})" for place, name in enumerate(labels) if counts[place] < _FEWEST]
    if not rare:
        return None
    message = f"{len(rare):,} of {len(labels):,} classes have fewer than {_FEWEST} rows: {_some(rare)}"
    return DataWarning("rare-classes", len(rare), message)


def _missing_values(parts: dict[str, TextRows], labels: Sequence[str]) -> DataWarning | None:
    counts = class_counts(parts.values(), len(labels))
    odd = [place for place, name in enumerate(labels) if name.strip().lower() in _MISSING]
    if not odd:
        return None
    count = sum(counts[place] for place in odd)
    names = _some([repr(labels[place]) for place in odd])
    message = f"{count:,} rows have the class {names}, which looks like a missing value: remove them or name the class"
    return DataWarning("missing-value-class", count, message)


def class_counts(parts: Iterable[Any], classes: int) -> Counter[int]:
    """Count the rows of each class; a row of several labels counts for each of them."""
    found = Counter[int]()
    for rows in parts:
        for label, times in Counter(_plain(label) for label in rows.labels).items():
            has = [place for place in range(classes) if label[place]] if isinstance(label, tuple) else [label]
            found.update(dict.fromkeys(has, times))
    return found


def _plain(label: Any) -> int | tuple[int, ...]:
    return label if isinstance(label, tuple) else int(label)


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else "")
