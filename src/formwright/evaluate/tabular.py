"""Look scores up in a table instead of training."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from formwright.core.checks import natural
from formwright.core.errors import IllegalInput
from formwright.core.records import Budget, Observation, Request, Spent
from formwright.evaluate.context import Context

T = TypeVar("T")


@dataclass(frozen=True)
class Tabular:
    """Score a card by what a table says of its digest at the steps of the budget.

    Without a budget the row with most steps is meant. `rows` maps digests to observations by steps.
    """

    rows: Mapping[str, Mapping[int, Observation]] = field(hash=False)

    def evaluate(self, request: Request, _: Context) -> Observation:
        """Look up the card of a request."""
        found = self.rows.get(request.card.digest)
        if found is None:
            raise IllegalInput(
                f"the table of {len(self.rows):,} designs has none with the digest {request.card.digest}"
            )
        return at_budget(found, request.budget)


def at_budget(found: Mapping[int, T], budget: Budget) -> T:
    """Give what a table has of a design after the steps of a budget; without a limit, after the most steps."""
    steps = max(found) if budget.steps is None else budget.steps
    if steps not in found:
        known = ", ".join(str(number) for number in sorted(found))
        raise IllegalInput(f"the table has this design after {known} steps, not after {steps}")
    return found[steps]


def read_table(path: Path) -> Tabular:
    """Read a table of JSON Lines, a design after so many steps in each line.

    A line is `{"digest": ..., "steps": ..., "metrics": {...}, "seconds": ..., "macs": ...}`; the last two may be left
    out.
    """
    rows: dict[str, dict[int, Observation]] = {}
    for number, line in _lines(path):
        try:
            row = json.loads(line)
            steps = natural("the steps", row["steps"])
            entry = Observation(row["metrics"], Spent(row.get("seconds", 0.0), steps, row.get("macs", 0)))
            if rows.setdefault(str(row["digest"]), {}).setdefault(steps, entry) is not entry:
                raise IllegalInput(f"the design {row['digest']} stands above already after {steps} steps")
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise IllegalInput(
                f'{path}, line {number}: expected an object with "digest", "steps" and "metrics" ({error})'
            ) from None
    if not rows:
        raise IllegalInput(f"{path} holds no rows; a table needs one JSON object a line")
    return Tabular(rows)


def write_table(path: Path, entries: Iterable[tuple[str, int, Observation]]) -> None:
    """Write observations by digest and steps, as `read_table` reads them."""
    with path.open("w", encoding="utf-8") as file:
        for digest, steps, observation in entries:
            row: dict[str, Any] = {"digest": digest, "steps": steps, "metrics": dict(observation.metrics)}
            spent = {"seconds": observation.spent.seconds, "macs": observation.spent.macs}
            file.write(json.dumps(row | spent) + "\n")


def _lines(path: Path) -> Iterable[tuple[int, str]]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise IllegalInput(f"cannot read {path}: {error}") from None
    return ((number, line) for number, line in enumerate(text.split("\n"), start=1) if line.strip())
