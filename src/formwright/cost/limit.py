"""Hard limits on costs, as predicates that a space can be restricted by."""

from collections.abc import Callable

from formwright.arch.card import Card
from formwright.core.errors import IllegalInput
from formwright.core.records import Objective
from formwright.cost.conventions import COSTS


def limit(text: str, length: int = 128) -> tuple[str, Callable[[Card], bool]]:
    """Read a limit such as ``params<=5M`` into a name and a predicate on cards, for `Space.restrict`."""
    objective = Objective.parse(text)
    if objective.bound is None:
        raise IllegalInput(f"{text!r} sets no limit; write, for example, 'params<=5M'")
    convention = COSTS.get(objective.name)
    return text, lambda card: objective.meets(float(convention(card, length).value))
