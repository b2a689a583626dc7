"""The numbers of a published method of compression."""

from dataclasses import dataclass

from formwright.compress.plan import Order


@dataclass(frozen=True)
class Defaults:
    """Say what a method does where the user says nothing else.

    `configurations` are the widths that a layer may have, at most. `between` are the random sub-networks of a step
    beside the largest and the smallest. `labels` is the weight of the labels beside the teacher.
    """

    configurations: int
    teacher_epochs: float
    epochs: float
    evaluations: int
    batch: int
    learning_rate: float
    network_rate: float
    dropout: float
    between: int
    labels: float
    temperature: float
    order: Order
    searcher: str
