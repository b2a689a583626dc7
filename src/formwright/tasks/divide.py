"""Divide rows into splits by a fixed seed."""

from collections.abc import Sequence
from itertools import accumulate

from formwright.core.errors import IllegalInput
from formwright.core.rng import derive
from formwright.tasks.draw import shuffled
from formwright.tasks.rows import Splits, TextRows

SEED = 0


def divide(rows: TextRows, shares: Sequence[int], where: str) -> list[TextRows]:
    """Deal rows at random into parts that are about as large as the shares say, the same parts every time.

    Rows of the same text stay together, so that no part knows answers of another. Each part keeps the order of rows.
    """
    same: dict[tuple[str, ...], list[int]] = {}
    for row, texts in enumerate(rows.texts):
        same.setdefault(texts, []).append(row)
    groups = list(same.values())
    ends = [len(rows) * share / sum(shares) for share in accumulate(shares)]
    parts: list[list[int]] = [[] for _ in shares]
    part = dealt = 0
    for place in shuffled(derive(SEED, "division"), len(groups)):
        while dealt >= ends[part]:
            part += 1
        parts[part] += groups[place]
        dealt += len(groups[place])
    if not all(parts):
        most = max(map(len, groups), default=0)
        same_text = f" ({most:,} of {len(rows):,} rows have the same text)" if most > 1 else ""
        raise IllegalInput(
            f"{where} has {len(groups)} different texts{same_text}, too few to be divided "
            f"{'/'.join(map(str, shares))}; give more rows, or a folder with files for train, validation and test"
        )
    return [_take(rows, sorted(part)) for part in parts]


def hold_out(train: TextRows, held: TextRows, what: str, where: str, whole: bool) -> Splits[TextRows]:
    """Make splits of training rows and one set of others: halves for validation and test, or a `whole` for validation.

    `what` is what to call the set, as in `official dev set`, and `where` its source.
    """
    size = f"the {what} of {len(held):,} rows"
    if whole:
        return Splits(train, held, None, division=f"{size}, whole")
    division = f"{size}, halved by seed {SEED} into validation and test"
    return Splits(train, *divide(held, (1, 1), where), division=division)


def _take(rows: TextRows, places: Sequence[int]) -> TextRows:
    return TextRows(tuple(rows.texts[place] for place in places), tuple(rows.labels[place] for place in places))
