"""How fast designs are enumerated, drawn as graphs, digested and costed.

The peer is networkx's Weisfeiler-Lehman hash of the same graphs, which, unlike ours, can give two different graphs one
hash. Times are CPU seconds of one thread, with the garbage collector off on both sides, as in `timeit`.
Run `.venv/bin/python benchmarks/foundation.py [--json FILE]`.
"""

from __future__ import annotations

import argparse
import gc
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import networkx as nx

from formwright.arch.card import Card
from formwright.arch.graph import Graph, graph_digest, graph_of
from formwright.cost import macs, params
from formwright.space.zoo import load_space

REPEATS = 5


def enumerate_and_digest() -> list[str]:
    space = load_space("flexibert")
    return [graph_digest(space.card(design)) for design in space.enumerate()]


def digest_everything() -> tuple[list[Card], list[Graph], list[str]]:
    space = load_space("flexibert")
    cards = [space.card(design) for design in space.enumerate()]
    return cards, [graph_of(card) for card in cards], [graph_digest(card) for card in cards]


def as_networkx(graph: Graph) -> nx.DiGraph:
    result = nx.DiGraph()
    result.add_nodes_from((node, {"label": label}) for node, label in enumerate(graph.labels))
    result.add_edges_from((source, target) for source, target, _ in graph.edges)
    return result


def fastest(work: Callable[[], object]) -> float:
    """Time the fastest of several runs, which noise from other programs disturbs least."""
    times = []
    gc.disable()
    for _ in range(REPEATS):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    gc.enable()
    return min(times)


def measure() -> dict[str, float]:
    cards, graphs, digests = digest_everything()
    assert len(set(digests)) == len(cards) == 9312
    ours = fastest(digest_everything)
    digests_alone = fastest(enumerate_and_digest)
    peers = [as_networkx(graph) for graph in graphs]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = fastest(lambda: [nx.weisfeiler_lehman_graph_hash(peer, node_attr="label") for peer in peers])
    shared = load_space("flexibert-s1")
    fresh = [shared.card(design) for design, _ in zip(shared.enumerate(), range(20_000), strict=False)]
    costed = fastest(lambda: [(params(card), macs(card)) for card in fresh])
    return {
        "designs": len(cards),
        "enumerate_graph_digest_s": ours,
        "networkx_hash_s": theirs,
        "times_faster_than_networkx": theirs / ours,
        "enumerate_digest_s": digests_alone,
        "times_faster_without_drawing_graphs": theirs / digests_alone,
        "cards_costed_per_s": len(fresh) / costed,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    arguments = parser.parse_args()
    figures = measure()
    print(f"enumerate, graph and digest {figures['designs']:.0f} designs: {figures['enumerate_graph_digest_s']:.3f} s")
    print(f"networkx Weisfeiler-Lehman hash of the same graphs: {figures['networkx_hash_s']:.3f} s")
    print(f"ratio: {figures['times_faster_than_networkx']:.1f} times faster (goal: 20)")
    without = figures["times_faster_without_drawing_graphs"]
    print(f"ratio without drawing the graphs, which the digest does not need: {without:.1f}")
    print(f"parameters and MACs of cards per second: {figures['cards_costed_per_s']:,.0f} (goal: 10,000)")
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
