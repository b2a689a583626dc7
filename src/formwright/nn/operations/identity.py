"""No operation."""

from torch import Tensor, nn

from formwright.arch.ops import Identity
from formwright.nn.settings import Settings
from formwright.nn.stack_context import StackContext


class PassOn(nn.Module):
    def __init__(self, operation: Identity, width: int, output: int, memory: int, settings: Settings) -> None:
        super().__init__()

    def forward(self, x: Tensor, context: StackContext) -> Tensor:
        return x
