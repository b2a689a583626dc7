"""How long the distances between all designs of the FlexiBERT space take.

The peer is what FlexiBERT's authors call for their edit distance: the first approximation of networkx's
`optimize_graph_edit_distance`, on the same graphs and with the same costs. Times are CPU seconds of one thread.
Run `.venv/bin/python benchmarks/distances.py [--json FILE]`.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

os.environ["OMP_NUM_THREADS"] = "1"  # before numpy is loaded: seconds of one core are the measure

import networkx as nx
import numpy as np
from scipy.stats import spearmanr

from formwright.arch.card import Card
from formwright.arch.compute_blocks import BlockKind, ComputeBlock
from formwright.arch.distance import Alignment, BlockOrder, Distance, EditDistance
from formwright.arch.graph import graph_of, segment
from formwright.core.rng import derive
from formwright.space.zoo import load_space

T = TypeVar("T")

GOALS = {"edit": 10, "alignment": 60}
PEER_PAIRS = 20


def timed(work: Callable[[], T]) -> tuple[float, T]:
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


def every_card() -> list[Card]:
    space = load_space("flexibert")
    return [space.card(design) for design in space.enumerate()]


def all_pairs(kind: type[Distance]) -> float:
    """Time the whole square matrix, from the cards on."""
    cards = every_card()
    seconds, matrix = timed(lambda: kind.of(cards).between(cards, cards))
    assert matrix.shape == (9312, 9312)
    return seconds


def as_networkx(card: Card, order: BlockOrder) -> nx.DiGraph:
    inside = [block for layer in card.stacks[0].layers for block in segment(layer).blocks]
    blocks = [ComputeBlock(BlockKind.INPUT), *inside, ComputeBlock(BlockKind.OUTPUT)]
    result = nx.DiGraph()
    result.add_nodes_from((node, {"rank": order.rank(block)}) for node, block in enumerate(blocks))
    result.add_edges_from((source, target) for source, target, _ in graph_of(card).edges)
    return result


def by_networkx(a: nx.DiGraph, b: nx.DiGraph) -> float:
    return next(
        nx.optimize_graph_edit_distance(
            a,
            b,
            node_subst_cost=lambda one, other: abs(one["rank"] - other["rank"]),
            node_del_cost=lambda node: node["rank"],
            node_ins_cost=lambda node: node["rank"],
            edge_del_cost=lambda edge: 0.1,
            edge_ins_cost=lambda edge: 0.1,
        )
    )


def peer() -> dict[str, float]:
    """Time networkx on random pairs, and compare what it finds with ours."""
    cards = every_card()
    measure = EditDistance.of(cards)
    left, right = derive(0, "pairs").integers(len(cards), size=(2, PEER_PAIRS))
    graphs = [[as_networkx(cards[index], measure.order) for index in side] for side in (left, right)]
    seconds, theirs = timed(lambda: [by_networkx(a, b) for a, b in zip(*graphs, strict=True)])
    ours = measure.pairs(cards, left, right)
    return {
        "networkx_s_per_pair": seconds / PEER_PAIRS,
        "spearman_with_networkx": float(spearmanr(ours, theirs).statistic),
        "largest_above_networkx": float(np.max(ours - np.array(theirs))),
    }


def measure() -> dict[str, float]:
    figures = {"pairs": 9312 * 9311 // 2, "edit_s": all_pairs(EditDistance), "alignment_s": all_pairs(Alignment)}
    figures |= peer()
    for name in GOALS:
        figures[f"{name}_times_faster"] = figures["networkx_s_per_pair"] * figures["pairs"] / figures[f"{name}_s"]
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    arguments = parser.parse_args()
    figures = measure()
    for name, goal in GOALS.items():
        print(f"{name}: all {figures['pairs']:,} pairs in {figures[f'{name}_s']:.2f} s (goal: {goal})")
    print(f"networkx: {figures['networkx_s_per_pair']:.4f} s a pair, {PEER_PAIRS} pairs")
    for name in GOALS:
        print(f"ratio: {name} {figures[f'{name}_times_faster']:,.0f} times faster a pair")
    print(f"Spearman of edit with networkx: {figures['spearman_with_networkx']:.4f}")
    print(f"edit less networkx, at most: {figures['largest_above_networkx']:.3f} (goal: never above 0)")
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
