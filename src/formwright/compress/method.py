"""How the stages of a compression are done."""

from dataclasses import dataclass

from formwright.compress.plan import Order
from formwright.train.distil import Mix
from formwright.train.fit import Training


@dataclass(frozen=True)
class Method:
    """Say how the stages are done: everything that decides them beside the data and the numbers of steps."""

    training: Training  # of the teacher; its recipe's steps are those of the plan
    network_rate: float
    mix: Mix
    between: int
    configurations: int
    whole: bool
    order: Order
    hidden: tuple[int, ...] = ()
