"""What op graphs cost: standard attention written as one against the built-in attention, and what was found by search.

    python benchmarks/op_graph.py --json op_graph.json

The goal is a ratio of at most 1.3 for standard attention. The layers 2 and 12 that AutoBERT-Zero published are timed
beside it, as they run and step by step, for information: they are other computations.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import torch
from models import Row, Work, begin, compared, inference, write

from formwright.arch.ops import Attention, OpGraph
from formwright.arch.primitives import Term
from formwright.nn.operations.attention import SelfAttention
from formwright.nn.operations.op_graph import OpGraphAttention
from formwright.nn.settings import Settings
from formwright.nn.stack_context import StackContext
from formwright.space.zoo.autobert_zero import SECOND_LAYER, STANDARD_ATTENTION, TWELFTH_LAYER

GOAL = 1.3
TERMS: dict[str, Term] = {"standard": STANDARD_ATTENTION, "layer 2": SECOND_LAYER, "layer 12": TWELFTH_LAYER}


def passes(module: torch.nn.Module, x: torch.Tensor, context: StackContext) -> tuple[Work, Work]:
    """Give a pass forwards, and one forwards and backwards."""

    def forward() -> torch.Tensor:
        result: torch.Tensor = module(x, context)
        return result

    def both() -> None:
        module.zero_grad()
        x.grad = None
        forward().sum().backward()

    return inference(forward), both


def rows_of(name: str, heads: int, head_width: int, length: int, batch: int, turns: int) -> list[Row]:
    """Compare one graph with the built-in attention of the same size, on padded sentences."""
    term, width = TERMS[name.removesuffix(", eager")], heads * head_width
    graph = OpGraphAttention(OpGraph(heads, head_width, term), width, width, 0, Settings(eager=name.endswith("eager")))
    built_in = SelfAttention(Attention(heads, head_width), width, width, 0, Settings(dropout=0.0))
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(batch, length, width, generator=generator).requires_grad_()
    mask = torch.arange(length)[None] < torch.linspace(length // 2, length, batch).long()[:, None]
    works = zip(*(passes(module, x, StackContext(mask)) for module in (graph, built_in)), strict=True)
    goal = GOAL if name == "standard" else None
    size = f"{heads} x {head_width}, batch {batch}, length {length}"
    return [
        compared(f"{name}, {way}, {size}", goal, pair, turns, time.process_time)
        for way, pair in zip(("forward", "forward and backward"), works, strict=True)
    ]


def show(row: Row) -> None:
    """Print one line."""
    goal = f"(goal: {row['goal']:g})" if row["goal"] else ""
    print(
        f"{row['row']:<66} {row['ours_ms']:8.2f} / {row['theirs_ms']:8.2f} ms = {row['ratio']:.3f} {goal}", flush=True
    )


def benchmark(sizes: Sequence[tuple[int, int, int, int]], turns: int) -> list[Row]:
    """Time all graphs at all sizes: heads, head width, length and batch."""
    names = [*TERMS, *(f"{name}, eager" for name in TERMS)]
    rows: list[Row] = []
    for name in names:
        for heads, head_width, length, batch in sizes:
            for row in rows_of(name, heads, head_width, length, batch, turns):
                show(row)
                rows.append(row)
    return rows


def main() -> None:
    arguments = begin(__doc__)
    # the nano and the published sizes, at lengths from a short sentence to a long document
    sizes = [(4, 16, 32, 32), (4, 16, 128, 32), (12, 64, 32, 8), (12, 64, 128, 8), (12, 64, 512, 1)]
    write(benchmark(sizes, arguments.turns), arguments.json)


if __name__ == "__main__":
    main()
