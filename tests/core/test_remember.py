"""A value remembers what follows from it, and forgets it when it travels to another process."""

import copy
import os
import pickle
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

from tests.arch.random_cards import random_card

import formwright
from formwright.arch.graph import graph_digest
from formwright.core.remember import remember, remembers
from formwright.core.rng import derive

SOURCE = str(Path(formwright.__file__).parents[1])
BLOCK = """
import pickle, sys
from formwright.arch.layers import Block
from formwright.arch.ops import Attention
block = Block(32, Attention(2, 16), (64,), "relu")
"""
SEND = BLOCK + "hash(block); sys.stdout.buffer.write(pickle.dumps((hash('relu'), block)))"
RECEIVE = BLOCK + (
    "text_hash, sent = pickle.load(sys.stdin.buffer);"
    "assert text_hash != hash('relu'), 'the two processes must hash text differently';"
    "print({block: 'found'}.get(sent), {sent: 'found'}.get(block), sent == block)"
)


@remembers
@dataclass(frozen=True)
class Point:
    x: int
    y: int

    @property
    @remember
    def distance(self) -> int:
        """Count the steps from the origin."""
        return abs(self.x) + abs(self.y)


@dataclass(frozen=True)
class Slow:
    """Count how often it is hashed."""

    hashed: list[int]

    def __hash__(self) -> int:
        self.hashed.append(1)
        return 7


@remembers
@dataclass(frozen=True)
class Holder:
    slow: Slow


def run(code: str, seed: str, sent: bytes = b"") -> bytes:
    """Run code in a fresh interpreter whose text hashes start from `seed`."""
    environment = {**os.environ, "PYTHONPATH": SOURCE, "PYTHONHASHSEED": seed}
    done = subprocess.run([sys.executable, "-c", code], env=environment, input=sent, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def test_a_value_is_hashed_once_and_like_its_equals() -> None:
    holder = Holder(Slow([]))
    assert hash(holder) == hash(holder)
    assert holder.slow.hashed == [1]
    assert len({Point(1, 2), Point(1, 2), Point(2, 1)}) == 2


def test_a_function_works_once_for_each_value() -> None:
    calls = []

    @remember
    def doubled(point: Point) -> int:
        calls.append(point)
        return 2 * point.x

    first, second = Point(1, 2), Point(5, 2)
    assert [doubled(first), doubled(second), doubled(first), doubled(second)] == [2, 10, 2, 10]
    assert calls == [first, second]


def test_functions_do_not_mix_up_what_they_remember() -> None:
    @remember
    def x(point: Point) -> int:
        return point.x

    @remember
    def y(point: Point) -> int:
        return point.y

    point = Point(1, 2)
    assert (x(point), y(point), point.distance) == (1, 2, 3)
    assert (x(point), y(point), point.distance) == (1, 2, 3)
    assert x.__name__ == "x"


def test_what_is_remembered_is_no_part_of_the_value_or_of_its_copies() -> None:
    point = Point(1, 2)
    assert (hash(point), point.distance) == (hash(Point(1, 2)), 3)
    assert (point, repr(point)) == (Point(1, 2), repr(Point(1, 2)))
    for other in (pickle.loads(pickle.dumps(point)), copy.copy(point), copy.deepcopy(point)):
        assert other == point
        assert set(vars(other)) == {"x", "y"}
    changed = replace(point, x=7)
    assert (changed.distance, hash(changed)) == (9, hash(Point(7, 2)))


def test_random_cards_survive_pickling_and_leave_behind_what_they_remember() -> None:
    rng = derive(0, "pickles")
    for _ in range(50):
        card = random_card(rng)
        fresh = pickle.dumps(card)
        assert len(graph_digest(card) + card.digest) == 128
        assert hash(card) == hash(pickle.loads(fresh))
        assert pickle.loads(pickle.dumps(card)) == card
        assert len(pickle.dumps(card)) == len(fresh)


def test_a_pickled_block_is_found_by_a_process_that_hashes_differently() -> None:
    sent = run(SEND, seed="1")
    assert run(RECEIVE, seed="2", sent=sent).decode().split() == ["found", "found", "True"]
