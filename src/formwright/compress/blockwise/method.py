"""The numbers of a block-wise method, and the menu that its chains are made from."""

from collections.abc import Callable
from dataclasses import dataclass

from formwright.arch.card import Card
from formwright.space.zoo.chains import Menu


@dataclass(frozen=True)
class Method:
    """Say how blocks are trained, shrunk and chosen where the user says nothing else.

    `menu` scales the chains to a teacher. A block begins with at most `candidates` chains; each of `rounds` rounds
    drops the worse half of every bin that has more than `least`, with `bins` bins along each cost. A step draws `paths`
    chains. `checked` is how many choices for a size are put together and compared with the teacher.
    """

    menu: Callable[[Card], Menu]
    candidates: int
    rounds: int
    bins: int
    least: int
    paths: int
    round_steps: int
    student_steps: int
    batch: int
    learning_rate: float
    student_rate: float
    checked: int
