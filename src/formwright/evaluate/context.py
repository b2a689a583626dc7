"""What an evaluator is told beside its request."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from formwright.core.records import History


@dataclass(frozen=True)
class Context:
    """Give an evaluator its seed, a folder to keep weights in, the trials so far, and someone to tell of each step.

    Without a folder nothing is kept: evaluations that need what earlier ones left refuse to run.
    """

    seed: int = 0
    folder: Path | None = None
    history: History = field(default_factory=History)
    after_step: Callable[[int, float], None] | None = field(default=None, compare=False)
