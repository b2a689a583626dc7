"""How well and how fast designs are embedded.

For both distances of designs: the time to embed all 9,312 designs of FlexiBERT's first level; stress and rank
correlation (Spearman) on pairs that were not fitted, by number of dimensions, with the knee of the stress; and the same
for new designs of spaces that nobody could list, placed by their distances to landmarks. One thread. Run
`OMP_NUM_THREADS=1 .venv/bin/python benchmarks/transformer2vec.py [--json FILE]`.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from transformer2vec_kit.faithfulness import faithfulness, knee

from formwright.arch.card import Card
from formwright.arch.distance import Alignment, Distance, EditDistance
from formwright.core.rng import derive
from formwright.search.listing import DIMENSIONS, LANDMARKS, Transformer2vec
from formwright.space.zoo import load_space

Row = dict[str, Any]
LISTED = "flexibert"
TOO_LARGE = ("flexibert-s1star", "autobert-zero")
TRIED = (2, 4, 8, 12, 16, 24, 32)
KINDS: dict[str, type[Distance]] = {"edit": EditDistance, "alignment": Alignment}
SAMPLE, NEW = 600, 600


def timed(work: Callable[[], Any]) -> tuple[Any, Row]:
    wall, cpu = time.perf_counter(), time.process_time()
    result = work()
    return result, {"wall_s": time.perf_counter() - wall, "cpu_s": time.process_time() - cpu}


def judged(embedding: Transformer2vec, cards: list[Card]) -> Row:
    found = faithfulness(embedding, cards)
    return {"dimensions": embedding.anchors.shape[1], "stress": found.stress, "spearman": found.spearman}


def listed(kind: type[Distance]) -> Row:
    space = load_space(LISTED)
    cards = [space.card(design) for design in space.enumerate()]

    def embed() -> Transformer2vec:
        embedding = Transformer2vec.of(cards, kind.of(cards))
        embedding.points(cards)
        return embedding

    spent = timed(embed)[1]
    distance = kind.of(cards)
    curve = {number: judged(Transformer2vec.of(cards, distance, number), cards) for number in TRIED}
    bend = knee({number: row["stress"] for number, row in curve.items()})
    return {"designs": len(cards), "landmarks": LANDMARKS, **spent, "by_dimensions": curve, "knee": bend}


def drawn(name: str, part: str, number: int) -> list[Card]:
    space, rng = load_space(name), derive(0, "transformer2vec", part)
    return [space.card(space.sample(rng, "gene")) for _ in range(number)]


def too_large(name: str, kind: type[Distance]) -> Row:
    sample, new = (drawn(name, part, number) for part, number in (("sample", SAMPLE), ("new", NEW)))
    embedding, spent = timed(lambda: Transformer2vec.of(sample, kind.of(sample)))
    return {"new_designs": NEW, "landmarks": LANDMARKS, "fit": spent, **judged(embedding, new)}


def show(figures: Row) -> None:
    for name, row in figures[LISTED].items():
        print(f"{LISTED}, {name}: {row['designs']} designs in {row['wall_s']:.2f} s (CPU {row['cpu_s']:.2f} s)")
        for number, found in row["by_dimensions"].items():
            mark = "  <- knee" if number == row["knee"] else "  <- default" if number == DIMENSIONS else ""
            print(f"  {number:2} dimensions: stress {found['stress']:.4f}, Spearman {found['spearman']:.4f}{mark}")
    for space in TOO_LARGE:
        for name, found in figures[space].items():
            print(f"{space}, {name}, new designs: stress {found['stress']:.4f}, Spearman {found['spearman']:.4f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    arguments = parser.parse_args()
    figures: Row = {LISTED: {name: listed(kind) for name, kind in KINDS.items()}}
    for space in TOO_LARGE:
        figures[space] = {name: too_large(space, kind) for name, kind in KINDS.items()}
    show(figures)
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
