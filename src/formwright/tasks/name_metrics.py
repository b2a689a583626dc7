"""Metrics that compare names of labels: entities marked by tags, tags of words, and directed relations."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from formwright.core.errors import IllegalInput

Values = NDArray[np.float64]
Entity = tuple[str, int, int]  # its type, its first word, and the word behind its last
Tags = Sequence[Sequence[str]]  # of the words of each row
OTHER = "Other"  # the relation that does not count
_BEGIN, _END = ("B", "S", "U"), ("E", "S", "L")  # prefixes of the first and of the last word of an entity


def entities(tags: Sequence[str]) -> Iterator[Entity]:
    """Yield the entities that tags such as `B-person` mark, read as the CoNLL evaluation does.

    A word continues an entity if its tag is `I`, `E` or `L` of the same type; after `O`, or after another type, such a
    tag begins an entity. Schemes are IOB, IOB2, IOBES and BILOU; a tag without a prefix counts as outside.
    """
    kind, first, closed = "", 0, True
    for place, tag in enumerate([*tags, "O"]):
        prefix, _, named = tag.partition("-")
        continues = bool(named) and named == kind and not closed and prefix not in _BEGIN
        if kind and not continues:
            yield kind, first, place
        if not continues:
            kind, first = named, place
        closed = prefix in _END


def entity_table(predictions: Tags, truth: Tags) -> Values:
    """Return for each row the entities of the same type and words on both sides, and how many both sides have."""
    rows = [(set(entities(said)), set(entities(true))) for said, true in _rows(predictions, truth)]
    return np.array([(len(said & true), len(said) + len(true)) for said, true in rows], np.float64)


def tag_table(predictions: Tags, truth: Tags) -> Values:
    """Return for each row how many words have the right tag, and how many words there are."""
    rows = _rows(predictions, truth)
    return np.array(
        [(sum(a == b for a, b in zip(said, true, strict=True)), len(true)) for said, true in rows], np.float64
    )


def share(table: Values, counts: Values) -> Values:
    """Divide the sum of the first column by that of the second."""
    right, all_of_them = (counts @ table).T
    found: Values = right / np.maximum(all_of_them, 1.0)
    return found


def _rows(predictions: Tags, truth: Tags) -> list[tuple[Sequence[str], Sequence[str]]]:
    rows = list(zip(predictions, truth, strict=False))
    if len(predictions) != len(truth) or not rows or any(len(said) != len(true) for said, true in rows):
        raise IllegalInput("a metric of tags needs the same rows, and one tag for each word, on both sides")
    return rows


def relation_table(predictions: Sequence[str], truth: Sequence[str]) -> Values:
    """Return for each row and relation: whether both sides have it with its direction, and how many sides have it.

    A label is a relation and its direction, as in `Cause-Effect(e2,e1)`; `Other` does not count. As in the official
    scorer of SemEval-2010 task 8, a right relation in the wrong direction is an error on both sides.
    """
    if len(predictions) != len(truth) or not len(truth):
        raise IllegalInput(f"a metric needs equally many rows of each; got {len(predictions)} and {len(truth)}")
    said, true = ([name.partition("(")[0] for name in side] for side in (predictions, truth))
    names = np.array(sorted({*said, *true} - {OTHER}) or [""])  # without any relation the score is 0
    has_said, has_true = (np.array(side)[:, None] == names for side in (said, true))
    same = np.array([one == other for one, other in zip(predictions, truth, strict=True)])
    return np.hstack((has_true & same[:, None], has_said.astype(np.int64) + has_true)).astype(np.float64)
