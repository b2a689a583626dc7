"""What may be searched: spaces as values, built from a few parts, and every search operator from their structure.

>>> space_root = Record.of(width=Choice((128, 256)), layers=Repeat(Choice((2, 4)), times=(2, 4)))
>>> space_root.count()
40
"""

from formwright.space.combinators import Choice, Record, Switch
from formwright.space.design import Case, Combinator, Fields, Gene, Path, show_path
from formwright.space.expression import Expressions
from formwright.space.narrow import Within, lists_of, narrowed
from formwright.space.repeat import Repeat, Row
from formwright.space.space import Constraint, Estimate, Space, mutate, neighbours

__all__ = [
    "Case", "Choice", "Combinator", "Constraint", "Estimate", "Expressions", "Fields", "Gene", "Path", "Record",
    "Repeat", "Row", "Space", "Switch", "Within", "lists_of", "mutate", "narrowed", "neighbours", "show_path",
]  # fmt: skip
