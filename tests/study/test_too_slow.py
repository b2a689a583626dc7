"""Designs that were measured beyond a target are known from the log."""

from pathlib import Path

from tests.study.cases import new_log

from formwright.study.too_slow import Miss, exceeds, misses, note_of


def test_what_was_measured_may_lie_beyond_a_limit() -> None:
    costs = {"macs": 10.0, "latency_ms": 8.1}
    assert exceeds(costs, "latency_ms<=8.0")
    assert not exceeds(costs, "latency_ms<=8.1")
    assert not exceeds(costs, "macs<=10.0")
    assert not exceeds(costs, "params<=1.0")  # which nobody measured


def test_misses_are_read_from_the_log_as_they_were_noted(tmp_path: Path) -> None:
    first, second, other = Miss("a", "x", 3, 8.5), Miss("b", "x", 3, 8.5), Miss("a", "y", None, 9.0)
    log = new_log(tmp_path)
    assert misses(log.read()) == {}
    for missed in ([first, second], [other]):
        log.append("note", "me", note_of(missed))
    assert misses(log.read()) == {"a": {"x": first, "y": other}, "b": {"x": second}}
