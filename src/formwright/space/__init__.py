"""What may be searched: spaces as values, built from a few parts, and every search operator from their structure.

>>> space_root = Record.of(width=Choice((128, 256)), layers=Repeat(Choice((2, 4)), times=(2, 4)))
>>> space_root.count()
40
"""

from formwright.space.choice import Choice
from formwright.space.constraint import Constraint, Estimate
from formwright.space.expression import Expressions
from formwright.space.gene import Gene, Path, show_path
from formwright.space.moves import mutate, neighbours
from formwright.space.narrow import lists_of, narrowed
from formwright.space.part import Part
from formwright.space.record import Record
from formwright.space.repeat import Repeat
from formwright.space.row import Row
from formwright.space.space import Space
from formwright.space.switch import Switch
from formwright.space.value import Case, Fields
from formwright.space.within import Within

__all__ = [
    "Case",
    "Choice",
    "Constraint",
    "Estimate",
    "Expressions",
    "Fields",
    "Gene",
    "Part",
    "Path",
    "Record",
    "Repeat",
    "Row",
    "Space",
    "Switch",
    "Within",
    "lists_of",
    "mutate",
    "narrowed",
    "neighbours",
    "show_path",
]
