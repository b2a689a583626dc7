"""What a super-network costs: a step of k sub-networks, the positions of AutoFormer, and the memory of a step.

- steps: a training step of k sub-networks of one network, against a step of each of k models of their own of the same
  sizes; and the first step of designs against their second, which knows already where their weights are.
- positions: a training step of an AutoFormer with 2-D relative positions by rows and columns, against the same with
  one vector for every pair of tokens (the plain definition, kept here).
- memory: the peak of what torch allocates in a step of 1, 2 and 4 times the largest design, and the peak of the process
  above that of the libraries; losses are followed back one after another, or all at once as a peer. The update
  `projected` keeps the gradient of the largest design and that of all others, which counts with few rows.
- lessons: the peak of what torch allocates in a step of 4 times the largest design against a step of one, with each
  lesson, for a language model of 8,000 words. Only `distil` has a teacher; `two-stage` is in its second stage.

Everything that is compared runs in turns on one thread; times are processor time.
Run `python benchmarks/supernet.py [--json FILE] [--turns N] [--parts steps positions memory lessons]`.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, count
from pathlib import Path
from typing import Any

import torch
from models import Row, Work, in_turns, write
from torch import Tensor
from torch.nn import functional as F
from torch.profiler import ProfilerActivity, profile

from formwright.arch.card import Card
from formwright.arch.embeddings import TokenEmbedding
from formwright.arch.heads import HeadSpec
from formwright.arch.layers import Block, Stack
from formwright.arch.ops import Attention
from formwright.core.rng import derive
from formwright.nn.build import build
from formwright.nn.deploy.interface import random_inputs
from formwright.nn.measurement import cpu_name
from formwright.nn.operations.attention import RelativePositions
from formwright.nn.stack_context import StackContext
from formwright.space.elastic import elastic
from formwright.space.zoo import load_space
from formwright.supernet.hull import Hull, find_hull
from formwright.supernet.inner_lessons import Anchor, AttentionRelations, HiddenStates
from formwright.supernet.lessons import Distil, InPlace, Labels, Lesson, LessonContext, TwoStage
from formwright.supernet.network import SuperNetwork
from formwright.train.hyperparameters import Hyperparameters
from formwright.train.loop import begin, go_on
from formwright.train.losses import classes
from formwright.train.streams import Batch
from formwright.train.updates import JoinedLosses, Projected

HEAD = HeadSpec("sequence-classification", 10)
SPACES = {"autoformer-nano-28": 32, "autotinybert-nano": 16, "lighthubert-nano": 16}  # with the rows of a batch
MANY = (1, 2, 4)
POSITIONS = (("autoformer-nano", 64), ("autoformer-nano-28", 32), ("autoformer-tiny", 4), ("autoformer-tiny", 16))
MEMORY = ("autoformer-tiny", 8)
BLOCK = Block(128, Attention(4, 32), (512,), norm="pre")
WRITER = Card(decoder=Stack(TokenEmbedding(8_000, 128, length=64), (BLOCK,) * 6, causal=True, final_norm=True))
WORDS, SENTENCES = HeadSpec("causal-lm"), 16
LESSONS = {
    "labels": Labels(),
    "distil": Distil(),
    "in-place": InPlace(),
    "in-place, labels=0.2": InPlace(labels=0.2),
    "hidden-states": HiddenStates(),
    "attention-relations": AttentionRelations(),
    "two-stage": TwoStage(Labels(), Distil(), share=0.0),
    "anchor": Anchor(),
}
PARTS = ("steps", "positions", "memory", "lessons")


@dataclass(frozen=True)
class Same:
    """One batch, again and again."""

    one: Batch

    def batch(self, step: int) -> Batch:
        return self.one


def batch_of(card: Card, rows: int) -> Batch:
    """Draw rows of the length that the design reads, or of 64 tokens."""
    given = random_inputs(card, rows, 64, torch.Generator().manual_seed(0))
    first = next(given[name] for name in ("input_ids", "pixel_values", "input_features") if name in given)
    labels = torch.randint(HEAD.labels, (rows,), generator=torch.Generator().manual_seed(1))
    return Batch(first, labels, given.get("attention_mask"))


def stepping(model: torch.nn.Module, loss: Any, batch: Batch) -> Work:
    """Give what trains a model for one more step, as a training does."""
    state = begin(model, Hyperparameters(steps=100_000))
    return lambda: go_on(state, Same(batch), loss, until=len(state.losses) + 1)


def steps(turns: int) -> Iterator[Row]:
    """Compare k sub-networks with k models."""
    for name, rows in SPACES.items():
        space = load_space(name)
        largest = find_hull(space).largest
        batch, lesson = batch_of(largest, rows), Labels().bind(HEAD.task)
        drawn = (space.card(space.sample(derive(turn, "benchmark"), "gene")) for turn in count())
        cards = [next(drawn) for _ in range(max(MANY))]
        for many in MANY:
            same, alone = cards[:many], [stepping(build(card, head=HEAD), classes, batch) for card in cards[:many]]
            works = [
                stepping(SuperNetwork(build(largest, head=HEAD), partial(_same, same)), lesson, batch),
                lambda alone=alone: [one() for one in alone],
            ]
            ours, theirs = in_turns(works, turns, time.process_time)
            yield row(f"{name}: a step of {many} sub-networks / {many} models", ours, theirs)
        yield from new_designs(name, largest, batch, drawn, turns)


def new_designs(name: str, largest: Card, batch: Batch, drawn: Iterator[Card], turns: int) -> Iterator[Row]:
    """Compare the first step of designs with their second, which knows already where their weights are."""
    now: list[Card] = []
    step = stepping(SuperNetwork(build(largest, head=HEAD), lambda *_: now), Labels().bind(HEAD.task), batch)
    taken: list[tuple[float, float]] = []
    for _ in range(turns):
        now[:] = [next(drawn) for _ in range(max(MANY))]
        start = time.process_time()
        step()
        between = time.process_time()
        step()
        taken.append((between - start, time.process_time() - between))
    first, second = (statistics.median(times) * 1e3 for times in zip(*taken, strict=True))
    yield row(f"{name}: a step of {max(MANY)} sub-networks, new ones / known ones", first, second)


def _same(cards: list[Card], *_: Any) -> list[Card]:
    return cards


class AllPairs:
    """One vector for every pair of tokens, as relative positions on a grid are defined."""

    def vectors(self: Any, table: Tensor, context: StackContext) -> Tensor:
        assert context.grid is not None
        (side, class_tokens), rows = context.grid, table.shape[1]
        reach = rows // 2 - 1

        def compute() -> Tensor:
            patch = torch.arange(side * side)
            place = torch.stack((patch // side, patch % side))
            apart = (place[:, None, :] - place[:, :, None]).clamp(-reach, reach) + reach + 1
            return F.pad(apart, (class_tokens, 0, class_tokens, 0))

        vertical, horizontal = context.once(("all pairs", rows), compute)
        return table[0][vertical] + table[1][horizontal]

    def scores(self: Any, query: Tensor, context: StackContext) -> Tensor:
        return torch.einsum("bhqd,qkd->bhqk", query, AllPairs.vectors(self, self.keys, context))

    def weighted_values(self: Any, weights: Tensor, context: StackContext) -> Tensor:
        return torch.einsum("bhqk,qkd->bhqd", weights, AllPairs.vectors(self, self.values, context))


def positions(turns: int) -> Iterator[Row]:
    """Compare positions by rows and columns with those of all pairs."""
    ways = [(way.scores, way.weighted_values) for way in (RelativePositions, AllPairs)]

    def by(way: tuple[Any, Any], work: Work) -> Work:
        def call() -> None:
            RelativePositions.scores, RelativePositions.weighted_values = way  # type: ignore[method-assign]
            work()

        return call

    for name, rows in POSITIONS:
        space = load_space(name)
        card = space.card(space.sample(derive(1, "benchmark"), "gene"))
        works = [by(way, stepping(build(card, head=HEAD), classes, batch_of(card, rows))) for way in ways]
        ours, theirs = in_turns(works, max(3, turns // 2), time.process_time)
        yield row(f"{name}, {rows} rows: rows and columns / all pairs", ours, theirs)
    by(ways[0], lambda: None)()


def memory(_: int) -> Iterator[Row]:
    """Measure each number of sub-networks in a process of its own."""
    (name, usual), few = MEMORY, 1
    for kind, rows, flags in (
        ("one after another", usual, []),
        ("all at once", usual, ["--at-once"]),
        ("projected", usual, ["--projected"]),
        ("projected", few, ["--projected"]),
    ):
        first: list[float] = []
        for many in MANY:
            command = [sys.executable, __file__, "--peak", str(many), "--rows", str(rows), *flags]
            found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            first = first or found
            yield {
                "row": f"{name}, {rows} rows: memory of a step of {many} sub-networks, {kind}",
                "allocated_mb": found[0],
                "ratio": found[0] / first[0],
                "process_mb": found[1],
                "process_ratio": found[1] / first[1],
            }


def peak(many: int, rows: int, at_once: bool, projected: bool) -> tuple[float, float]:
    """Return the megabytes that torch allocates in a step, and those of the process above the libraries'."""
    largest = find_hull(load_space(MEMORY[0])).largest
    before = _status("VmRSS")
    network = SuperNetwork(build(largest, head=HEAD), partial(_same, [largest] * many))
    each = Labels().bind(HEAD.task)
    loss: Any = (lambda said, batch: sum(each(said, batch))) if at_once else each
    step = stepping(network, JoinedLosses(each, Projected(after=0.0)) if projected else loss, batch_of(largest, rows))
    for _ in range(2):
        step()
    process = _status("VmHWM") - before
    return allocated(step), process


def allocated(step: Work) -> float:
    """Return the megabytes that torch allocates in a step, at its peak."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as watched:
        step()
    events = watched.profiler.kineto_results.events()  # type: ignore[union-attr]
    changes = sorted((event.start_ns(), event.nbytes()) for event in events if event.name() == "[memory]")
    return max(accumulate(size for _, size in changes)) / 1e6


def lessons(_: int) -> Iterator[Row]:
    """Compare the memory of a step of several designs with that of one, with each lesson."""
    for name, lesson in LESSONS.items():
        one, several = (lesson_peak(lesson, many) for many in (1, max(MANY)))
        yield {
            "row": f"lesson {name}: memory of a step of {max(MANY)} sub-networks / 1",
            "allocated_mb": several,
            "allocated_by_one_mb": one,
            "ratio": several / one,
        }


def lesson_peak(lesson: Lesson, many: int) -> float:
    """Return the megabytes that torch allocates in a step of a lesson."""
    teacher = build(WRITER, head=WORDS, seed=1) if lesson.NEEDS_TEACHER and not lesson.NEEDS_LARGEST else None
    network = SuperNetwork(build(WRITER, head=WORDS), partial(_same, [WRITER] * many), teacher)
    loss = lesson.bind(WORDS.task, LessonContext(network, Hull(elastic(WRITER, (1, 4), (128, 512)), WRITER, WRITER), 4))
    tokens, words = torch.randint(8_000, (2, SENTENCES, 64), generator=torch.Generator().manual_seed(0))
    step = stepping(network, loss, Batch(tokens, words.flatten(), positions=torch.ones_like(tokens).bool()))
    step()
    return allocated(step)


def _status(field: str) -> float:
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) / 1e3


def row(name: str, ours: float, theirs: float) -> Row:
    return {"row": name, "ours_ms": ours, "theirs_ms": theirs, "ratio": ours / theirs}


def show(row: Row) -> None:
    """Print one line."""
    if "allocated_by_one_mb" in row:
        both = f"{row['allocated_mb']:.0f} / {row['allocated_by_one_mb']:.0f} MB"
        print(f"{row['row']:<84} {both} = {row['ratio']:.2f}", flush=True)
    elif "allocated_mb" in row:
        process = f"(process: {row['process_mb']:.0f} MB = {row['process_ratio']:.2f})"
        print(f"{row['row']:<84} {row['allocated_mb']:6.0f} MB = {row['ratio']:.2f} {process}", flush=True)
    else:
        print(f"{row['row']:<78} {row['ours_ms']:8.1f} / {row['theirs_ms']:8.1f} ms = {row['ratio']:.2f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--turns", type=int, default=20, help="repetitions of each work")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS, help="what to measure")
    parser.add_argument("--peak", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--rows", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--at-once", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--projected", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.peak:
        print(json.dumps(peak(arguments.peak, arguments.rows, arguments.at_once, arguments.projected)))
        return
    print(f"one thread, {cpu_name()}, torch {torch.__version__}")
    parts: dict[str, Callable[[int], Iterator[Row]]] = {
        "steps": steps,
        "positions": positions,
        "memory": memory,
        "lessons": lessons,
    }
    rows = []
    for part in arguments.parts:
        for found in parts[part](arguments.turns):
            show(found)
            rows.append(found)
    write(rows, arguments.json)


if __name__ == "__main__":
    main()
