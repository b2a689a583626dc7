"""Latencies that decide: the least of several measurements, the same verdict on a busy machine as on an idle one."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

import pytest

from formwright.arch.card import Card
from formwright.arch.layers import Block, Stack, TokenEmbedding
from formwright.arch.ops import Attention
from formwright.cost.measured import LATENCY
from formwright.nn.latency import REPEATED, LeastLatency, measured_latency
from formwright.nn.measure import Latency
from formwright.pipeline.limits import Limits
from formwright.testing.spaces import small

ONE = Latency(1.0, 1.0, 1.0, 0.0, 0.0, False, 20, 1, "torch", "cpu", "abacus", None)
CARDS = [small().card(design) for design in small().enumerate()]


def latency(*times: float, busy: bool = False) -> tuple[LeastLatency, list[float]]:
    """Let measurements give these times, one after the other; give also what is left of them."""
    left = list(times)
    return LeastLatency(lambda _: replace(ONE, median_ms=left.pop(0), busy=busy), pause=lambda _: None), left


def test_a_card_is_measured_once() -> None:
    found, left = latency(2.0, 3.0)
    assert ([found(CARDS[0]), found(CARDS[0]), found(CARDS[1])], left) == ([2.0, 2.0, 3.0], [])


@pytest.mark.parametrize(
    ("times", "told"), [((4.0,), None), ((6.7, 1.3), None), ((6.7, 9.0, 4.9), None), ((6.7, 6.25, 9.0), "6.25")]
)
def test_a_design_is_measured_again_before_it_is_rejected(times: tuple[float, ...], told: str | None) -> None:
    found, left = latency(*times)
    refusal = Limits.parse(["latency_ms<=5"], 16).gate({LATENCY: found})(CARDS[0])
    assert left == []
    assert refusal is None if told is None else refusal is not None and told in refusal
    assert found(CARDS[0]) == min(times)  # which the observation is told


def test_a_rejection_says_that_the_machine_was_busy() -> None:
    gate = Limits.parse(["latency_ms<=5"], 16).gate
    found, left = latency(*[9.0] * (1 + REPEATED), busy=True)
    assert "busy" in str(gate({LATENCY: found})(CARDS[0]))
    assert left == []  # a busy machine is the more reason to measure again
    assert "busy" not in str(gate({LATENCY: latency(*[9.0] * (1 + REPEATED))[0]})(CARDS[0]))


def test_only_so_many_cards_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("formwright.nn.latency._REMEMBERED", 1)
    found, _ = latency(2.0, 3.0, 4.0)
    assert [found(CARDS[0]), found(CARDS[1]), found(CARDS[0])] == [2.0, 3.0, 4.0]


SPIN = "import os, sys\nos.sched_setaffinity(0, {int(sys.argv[1])})\nprint(flush=True)\nwhile True: pass"


@contextmanager
def two_busy_processes() -> Iterator[None]:
    """Share one processor with two processes that never rest."""
    before = os.sched_getaffinity(0)
    here = min(before)
    spinning = [subprocess.Popen([sys.executable, "-c", SPIN, str(here)], stdout=subprocess.PIPE) for _ in range(2)]
    try:
        for process in spinning:
            process.stdout.readline()
        os.sched_setaffinity(0, {here})
        yield
    finally:
        os.sched_setaffinity(0, before)
        for process in spinning:
            process.kill()
            process.communicate()


@pytest.mark.alone
@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="processes are bound to one processor on Linux only")
def test_two_busy_processes_change_no_verdict() -> None:
    """A design of half the limit is accepted and one of twice the limit rejected, as on an idle machine."""
    card = Card(Stack(TokenEmbedding(100, 256), (Block(256, Attention(4, 64), (1024,)),) * 2))
    measured = partial(measured_latency, length=128)
    idle = min(measured(card).median_ms for _ in range(2))
    with two_busy_processes():
        loaded = measured(card)
        verdicts = [
            Limits.parse([f"latency_ms<={share * idle}"], 128).gate({LATENCY: LeastLatency(measured)})(card)
            for share in (2.0, 0.5)
        ]
    assert loaded.busy
    assert loaded.high_ms > 2 * idle  # the load was real: so long a run took
    assert verdicts[0] is None
    assert verdicts[1] is not None
