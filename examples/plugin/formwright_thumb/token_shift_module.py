"""The operation as it runs."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from formwright.nn.settings import Settings
from formwright.nn.stack_context import StackContext
from formwright_thumb.token_shift import TokenShift


class TokenShiftModule(nn.Module):
    """Blend every token with an earlier one; `share` says how much of the earlier one a channel takes."""

    def __init__(self, operation: TokenShift, width: int, output: int, memory: int, settings: Settings) -> None:
        super().__init__()
        self.steps = operation.steps
        self.share = nn.Parameter(torch.empty(width))
        self.output = nn.Linear(width, output)

    def forward(self, x: Tensor, context: StackContext) -> Tensor:
        near = context.joined(context.real(x), 1, most=self.steps)  # what was read before, then these tokens
        earlier = F.pad(near, (0, 0, self.steps + x.shape[1] - near.shape[1], 0))[:, : x.shape[1]]
        return self.output(x + self.share * (earlier - x))
