"""Settings of a model that are not part of its card, and how its weights start."""

import math
from dataclasses import dataclass
from typing import Literal, get_args

from formwright.core.errors import IllegalInput

PoolerActivation = Literal["tanh", "gelu", "relu"]
Pooling = Literal["first", "mean"]
Spread = Literal["bert", "width"]


@dataclass(frozen=True)
class Settings:
    """Settings that are not part of the design.

    `pooling` says how a sentence becomes one vector where the card has no pooler. `eager` runs attention step by step
    instead of through the fused kernel, for counting operations and for inspection.
    """

    dropout: float = 0.1
    norm_epsilon: float = 1e-12
    pooler_activation: PoolerActivation = "tanh"
    pooling: Pooling = "first"
    eager: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.dropout <= 1:
            raise IllegalInput(f"dropout is {self.dropout}; it must be from 0 to 1")
        if not 0 <= self.norm_epsilon < math.inf:
            raise IllegalInput(f"norm_epsilon is {self.norm_epsilon}; it must be a number, at least 0")
        for name, kinds in (("pooler_activation", PoolerActivation), ("pooling", Pooling)):
            if getattr(self, name) not in get_args(kinds):
                raise IllegalInput(f"{name} is {getattr(self, name)!r}; it must be one of {', '.join(get_args(kinds))}")


class OwnStart:
    """What a module derives from whose parameters do not start as those of other modules do."""

    def start_spread(self, name: str, spread: Spread) -> float | None:
        """Return the standard deviation of a parameter at the start; None for the ordinary one."""
        return None

    def finish_start(self) -> None:
        """Change what was drawn, without gradients."""
