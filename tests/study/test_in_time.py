"""A design that has to keep a target in milliseconds is measured before anything is made of it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.study.cases import own_rows

from formwright.core.rng import derive
from formwright.space.zoo import load_space
from formwright.study import in_time
from formwright.study.candidates import Candidate
from formwright.study.in_time import measured_in_time, refuse_slow
from formwright.study.place import Opened, create
from formwright.study.too_slow import Miss, TooSlow, misses

TARGETS = {"nine": "latency_ms<=9", "eight": "latency_ms<=8", "half": "macs<=100"}


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opened]:
    with create(tmp_path / "mine", own_rows(tmp_path, targets=TARGETS)).open() as found:
        yield found


def candidate(*keeps: str) -> Candidate:
    space = load_space("flexibert-nano")
    return Candidate("nine", "front", space.card(space.sample(derive(4))), 7, keeps)


def test_what_keeps_its_targets_is_borne_and_so_is_one_that_has_to_keep_none(opened: Opened) -> None:
    refuse_slow(opened, candidate("nine", "eight", "half"), {"latency_ms": 8.0, "macs": 100.0})
    refuse_slow(opened, candidate(), {"latency_ms": 80.0})
    assert misses(opened.log.read()) == {}


def test_every_target_that_is_missed_is_noted(opened: Opened) -> None:
    with pytest.raises(TooSlow, match=r"trial 7 was measured, and 8.5 is beyond latency_ms<=8$"):
        refuse_slow(opened, candidate("nine", "eight"), {"latency_ms": 8.5, "macs": 1.0})
    digest = candidate().card.digest
    assert misses(opened.log.read()) == {"eight": {digest: Miss("eight", digest, 7, 8.5)}}
    with pytest.raises(TooSlow, match=r"9.5 is beyond latency_ms<=9, 9.5 is beyond latency_ms<=8"):
        refuse_slow(opened, candidate("nine", "eight"), {"latency_ms": 9.5})
    assert misses(opened.log.read()).keys() == {"nine", "eight"}


def measured(monkeypatch: pytest.MonkeyPatch, *times: float) -> Iterator[float]:
    """Let the next measurements give these times."""
    left = iter(times)
    monkeypatch.setattr(in_time, "shared_weights", lambda _: in_time)
    monkeypatch.setattr(in_time, "extracted", lambda card: card, raising=False)
    monkeypatch.setattr(in_time, "torch_ms", lambda *_: next(left))
    return left


def test_a_busy_moment_is_no_fault_of_the_design(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    left = measured(monkeypatch, 8.5, 7.5, 6.0)
    assert measured_in_time(opened, candidate("nine", "eight")) == 7.5
    assert measured_in_time(opened, candidate("eight")) == 6.0  # and one that keeps it is measured once
    assert list(left) == []


def test_one_that_misses_its_target_twice_is_refused(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    measured(monkeypatch, 8.5, 8.25)
    with pytest.raises(TooSlow, match=r"8\.25 is beyond"):
        measured_in_time(opened, candidate("eight"))


def test_other_costs_are_not_measured_in_advance(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    measured(monkeypatch)
    assert measured_in_time(opened, candidate("half")) is None
    assert measured_in_time(opened, candidate()) is None
