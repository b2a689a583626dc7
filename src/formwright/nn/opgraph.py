"""Attention computed from a graph of primitive operations, as a flat program that is compiled once."""

from torch import Tensor, nn

from formwright.arch.ops import OpGraph
from formwright.nn.attention import join_heads, split_heads
from formwright.nn.context import Context
from formwright.nn.opgraph_program import ATTEND, GROWING, Step, compiled
from formwright.nn.primitives import APPLY, attend, bounded, bounded_input


class OpGraphAttention(nn.Module):
    """Run one graph: project the input once for each letter, compute every distinct value once, project back.

    Inputs and gradients of up to a million make nothing infinite and nothing that is no number, forwards or backwards,
    whatever the graph: what grows beyond all that a sound training has is cut off. An `eager` graph takes every
    operation as it is written, without the fused kernel.
    """

    def __init__(self, operation: OpGraph, width: int, output: int, *, eager: bool = False) -> None:
        super().__init__()
        inner = operation.heads * operation.head_width
        self.heads, self.head_width = operation.heads, operation.head_width
        self.program = compiled(operation.term, fused=not eager)
        self.inputs = nn.ModuleDict({letter: nn.Linear(width, inner) for letter in operation.inputs})
        self.output = nn.Linear(inner, output)

    def forward(self, x: Tensor, context: Context) -> Tensor:
        guarded = self.program.grows
        letters = (project(x) for project in self.inputs.values())
        values = [split_heads(bounded_input(letter) if guarded else letter, self.heads) for letter in letters]
        for step in self.program.steps:
            value = self._applied(step, [values[place] for place in step.operands], context)
            values.append(bounded(value) if guarded and step.operation in GROWING else value)
        return self.output(join_heads(values[self.program.result]))

    def _applied(self, step: Step, values: list[Tensor], context: Context) -> Tensor:
        if step.operation == ATTEND:
            queries, keys, others = values
            return attend(queries, keys, others, self.head_width ** (-0.5 * step.scales), context)
        if step.operation == "scale":
            return values[0] * self.head_width**-0.5
        return APPLY[step.operation](values, step.shapes, context)
