"""What a model needs to know beside its card."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Settings:
    """Hold what is no part of the design.

    `pooling` says how a sentence becomes one vector where the card has no pooler. `eager` runs attention step by step
    instead of through the fused kernel, for counting operations and for inspection.
    """

    dropout: float = 0.1
    norm_epsilon: float = 1e-12
    pooler_activation: Literal["tanh", "gelu", "relu"] = "tanh"
    pooling: Literal["first", "mean"] = "first"
    eager: bool = False
