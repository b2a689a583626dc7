"""Targets in the user's words, as limits, and those that cannot be met."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formwright.core.errors import IllegalInput, UnknownName
from formwright.core.records import Objective
from formwright.pipeline.targets import USUAL, Range, Target, limits, redundant_targets


@pytest.mark.parametrize(
    ("text", "target", "name"),
    [
        ("macs=50%", Target("macs", 50.0, True), "macs-50pct"),
        (" macs = 12.5 % ", Target("macs", 12.5, True), "macs-12.5pct"),
        ("latency_ms=8", Target("latency_ms", 8.0), "latency_ms-8"),
        ("latency_ms=100%", Target("latency_ms", 100.0, True), "latency_ms-100pct"),
        ("params=1e7", Target("params", 1e7), "params-10000000"),
        ("params<=10M", Target("params", 1e7), "params-10000000"),
        ("macs<=50%", Target("macs", 50.0, True), "macs-50pct"),
        ("latency_ms <= 8 ms", Target("latency_ms", 8.0), "latency_ms-8"),
        ("params-body=2E6", Target("params-body", 2e6), "params-body-2000000"),
    ],
)
def test_a_target_is_a_share_or_an_amount(text: str, target: Target, name: str) -> None:
    assert Target.parse(text) == target
    assert target.name == name


@pytest.mark.parametrize(
    "text", ["", "macs", "macs=", "=50%", "macs>=50%", "macs=fifty", "macs=50%%", "macs=50 MB", "50%"]
)
def test_what_is_no_target_is_refused(text: str) -> None:
    with pytest.raises(IllegalInput):
        Target.parse(text)


@pytest.mark.parametrize("text", ["macs=1e", "macs=1.2.3", "macs=+-3", "macs=e%", "macs=8ms", "macs=1e999"])
def test_what_is_no_number_is_refused(text: str) -> None:
    with pytest.raises(IllegalInput, match=re.escape(text.partition("=")[2])):
        Target.parse(text)


@pytest.mark.parametrize("text", ["mac=50%", "parms<=5M"])
def test_a_cost_that_does_not_exist_is_refused_with_the_nearest(text: str) -> None:
    with pytest.raises(UnknownName, match=r"Nearest: '(macs|params)'"):
        Target.parse(text)


@pytest.mark.parametrize("text", ["macs=0", "macs=-1", "macs=0%", "macs=101%"])
def test_what_no_model_costs_is_refused(text: str) -> None:
    with pytest.raises(IllegalInput, match="must be above 0 and, where it is a share, at most 100%"):
        Target.parse(text)


def test_the_usual_targets_can_be_read() -> None:
    assert [Target.parse(text).of(200.0) for text in USUAL] == [150.0, 100.0, 70.0, 50.0]


def test_targets_become_limits_by_name() -> None:
    targets = [Target.parse(text) for text in ("macs=50%", "latency_ms=8", "macs=100%")]
    found = limits(targets, {"macs": Range(10.0, 1000.0), "latency_ms": Range(2.0, 16.0)})
    assert found == {"macs-50pct": "macs<=500.0", "latency_ms-8": "latency_ms<=8.0", "macs-100pct": "macs<=1000.0"}


@given(share=st.floats(1, 100), full=st.floats(1e-3, 1e12))
def test_a_limit_keeps_the_amount_to_the_last_digit(share: float, full: float) -> None:
    target = Target("macs", share, True)
    (text,) = limits([target], {"macs": Range(0.0, full)}).values()
    assert Objective.parse(text).bound == target.of(full)


def told(text: str, reach: Range) -> str:
    with pytest.raises(IllegalInput) as caught:
        limits([Target.parse(text)], {"macs": reach})
    return str(caught.value)


def test_a_target_that_cannot_be_met_is_refused_with_the_range_that_can() -> None:
    expected = "the target macs 20 (10.0% of the model's) cannot be met: sub-networks of this model reach from "
    assert told("macs=10%", Range(50.0, 200.0)) == f"{expected}50 (25%) to 200"
    assert limits([Target.parse("macs=50")], {"macs": Range(50.0, 200.0)}) == {"macs-50": "macs<=50.0"}


def test_a_target_above_the_model_is_met_by_all_and_that_is_said() -> None:
    targets, ranges = [Target.parse(text) for text in ("macs=201", "macs=200", "macs=100%")], {"macs": Range(50, 200)}
    assert [float(limit.removeprefix("macs<=")) for limit in limits(targets, ranges).values()] == [200.0] * 3
    (line,) = redundant_targets(targets, ranges)
    assert line.startswith("the target macs 201 lies above the model's own 200: every sub-network meets it")


@given(least=st.floats(1, 99), full=st.floats(100, 1e9))
def test_the_share_that_is_told_can_be_asked_for(least: float, full: float) -> None:
    reach = Range(least / 100 * full, full)
    (share,) = re.findall(r"from \S+ \((\S+%)\)", told("macs=0.5%", reach))
    assert limits([Target.parse(f"macs={share}")], {"macs": reach})
