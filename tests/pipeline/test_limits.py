import re
from collections.abc import Sequence
from dataclasses import replace

import pytest
from tests.nn.test_latency import ONE

from formwright.arch.card import Card
from formwright.core.errors import IllegalInput
from formwright.core.records import Objective
from formwright.core.rng import derive
from formwright.cost import LATENCY, macs, params
from formwright.nn.latency import REPEATED, LeastLatency
from formwright.nn.measurement import Latency
from formwright.pipeline.limits import Limits, cost, refuse_impossible_bounds
from formwright.space import Choice, Record, Space
from formwright.space.zoo import load_space
from formwright.testing.toy_problem import large, layered, small, tiny

CARDS = [small().card(design) for design in small().enumerate()]


def names(limits: Limits) -> tuple[list[str], ...]:
    return tuple([limit.name for limit in group] for group in (limits.cheap, limits.measured, limits.scores))


def test_limits_are_sorted_by_when_they_can_be_checked() -> None:
    limits = Limits.parse(["accuracy>=0.8", "params<=5e6", "latency_ms<=5", "macs <= 1e9"], 16)
    assert names(limits) == (["params", "macs"], ["latency_ms"], ["accuracy"])
    limits = Limits.parse([], 16)
    assert limits.legal(CARDS[0])
    limits.refuse_impossible(tiny(), 0)
    with pytest.raises(IllegalInput, match="'params:min' sets no limit"):
        Limits.parse(["params:min"], 16)
    assert cost(CARDS[0], "macs", 8) < cost(CARDS[0], "macs", 16) == macs(CARDS[0], 16)


def test_cheap_limits_decide_by_the_card_alone() -> None:
    bound = sorted(map(params, CARDS))[len(CARDS) // 2]
    most = sorted(macs(card, 16) for card in CARDS)[len(CARDS) // 2]
    limits = Limits.parse([f"params<={bound}", f"macs>={most}"], 16)
    expected = [params(card) <= bound and macs(card, 16) >= most for card in CARDS]
    assert [limits.legal(card) for card in CARDS] == expected
    assert set(expected) == {True, False}  # the limits tell these cards apart


def test_impossible_limits_name_the_nearest_design_with_each_cost_once() -> None:
    smallest = min(map(params, CARDS))
    with pytest.raises(IllegalInput) as caught:
        Limits.parse(["params<=10"], 16).refuse_impossible(small(), 0)
    told = f"no design of small with params<=10.0 was found; the nearest has params {smallest:,}. Loosen the limit"
    assert str(caught.value) == told
    with pytest.raises(IllegalInput, match=r"params<=10\.0 and macs>=1000000000000\.0 .* params [\d,]+, macs [\d,]+"):
        Limits.parse(["params<=10", "macs>=1e12"], 16).refuse_impossible(small(), int(derive(0).integers(9)))
    with pytest.raises(IllegalInput, match=r"was found; the nearest has params [\d,]+\. Loosen"):
        Limits.parse(["params<=10", "params>=5"], 16).refuse_impossible(small(), 0)


def test_limits_that_some_design_keeps_are_possible_and_measured_only_where_named() -> None:
    Limits.parse([f"params<={min(map(params, CARDS))}"], 16).refuse_impossible(small(), 0)
    Limits.parse(["params<=160772", "params>=160772"], 16).refuse_impossible(load_space("flexibert-nano"), 0)

    def measure(_: Card) -> Latency:
        pytest.fail("measured")

    limits, latency = Limits.parse(["params<=5"], 16), LeastLatency(measure)
    limits.check_measured_feasible(small(), 0, {LATENCY: latency})
    assert limits.gate({LATENCY: latency})(CARDS[0]) is None


@pytest.mark.parametrize(("fastest", "refused"), [(9.0, False), (10.0, False), (10.5, True)])
def test_a_latency_that_is_missed_by_far_is_refused(fastest: float, refused: bool) -> None:
    measured: list[Card] = []

    def measure(card: Card) -> Latency:
        measured.append(card)
        return replace(ONE, median_ms=fastest)

    limits, latency = Limits.parse(["latency_ms<=5"], 16), LeastLatency(measure, pause=lambda _: None)
    if refused:
        with pytest.raises(IllegalInput, match=r"(?s)small.*latency_ms<=5.*10\.5"):
            limits.check_measured_feasible(small(), 0, {LATENCY: latency})
        assert len(measured) == 3 * (1 + REPEATED)  # three designs, and each again before that is believed
    else:
        limits.check_measured_feasible(small(), 0, {LATENCY: latency})
    assert macs(measured[0], 16) == min(macs(card, 16) for card in CARDS)


@pytest.mark.parametrize(("latency", "kept"), [(8.4, False), (8.6, True), (10.0, True), (10.9, True), (11.1, False)])
def test_a_band_of_latency_is_two_limits(latency: float, kept: bool) -> None:
    limits = Limits.parse(["latency_ms>=8.5", "latency_ms<=11"], 16)
    refuse_impossible_bounds(limits.measured)
    meter = LeastLatency(lambda _: replace(ONE, median_ms=latency), pause=lambda _: None)
    limits.check_measured_feasible(small(), 0, {LATENCY: meter})
    refusal = limits.gate({LATENCY: meter})(CARDS[0])
    assert (refusal is None) == kept


def least_macs(space: Space, limits: Sequence[str] = ()) -> int:
    """Give the MACs of the design that is measured to see whether a latency is to be expected."""
    measured: list[int] = []

    def measure(card: Card) -> Latency:
        measured.append(macs(card, 16))
        return ONE

    Limits.parse(["latency_ms<=5", *limits], 16).check_measured_feasible(space, 0, {LATENCY: LeastLatency(measure)})
    return measured[0]


def test_the_fastest_design_is_looked_for_by_its_macs_within_the_counted_limits() -> None:
    nano = load_space("flexibert-nano")
    assert least_macs(nano) == min(macs(nano.card(design), 16) for design in nano.enumerate())
    least = layered("least", (4,), (16,), ())
    smallest = min(macs(least.card(design), 16) for design in least.enumerate())
    assert least_macs(large()) == smallest  # a space too large to list
    most = sorted(map(params, CARDS))[len(CARDS) // 2]
    expected = min(macs(card, 16) for card in CARDS if params(card) >= most)
    assert least_macs(small(), [f"params>={most}"]) == expected


def test_a_space_too_large_to_list_is_searched_downhill() -> None:
    least = layered("least", (4,), (16,), ())
    smallest = min(params(least.card(design)) for design in least.enumerate())
    with pytest.raises(IllegalInput, match=r"no design of large with params<=10\.0 was found; the nearest has params"):
        Limits.parse(["params<=10"], 16).refuse_impossible(large(), 0)
    Limits.parse([f"params<={smallest}"], 16).refuse_impossible(large(), 0)


@pytest.mark.parametrize("listed", [True, False])
def test_the_only_design_of_a_space_is_the_nearest(listed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("formwright.pipeline.limits.listable", lambda space: listed)
    only = Space("only", Record.of(depth=Choice((1,))), lambda design: CARDS[0])
    told = f"no design of only with params<=10.0 was found; the nearest has params {params(CARDS[0]):,}."
    with pytest.raises(IllegalInput, match=re.escape(told)):
        Limits.parse(["params<=10"], 16).refuse_impossible(only, 0)


def bounds(*texts: str) -> list[Objective]:
    return [Objective.parse(text) for text in texts]


@pytest.mark.parametrize(
    "texts",
    [
        (),
        ("accuracy>=1.0",),
        ("accuracy>=0.9", "accuracy<=0.9"),
        ("matthews>=-0.5",),
        ("perplexity<=1",),
        ("bleu>=40",),
        ("params>=5", "params<=6", "params<=7"),
        ("accuracy<=2",),
    ],
)
def test_what_some_result_keeps_is_allowed(texts: tuple[str, ...]) -> None:
    refuse_impossible_bounds(bounds(*texts))


@pytest.mark.parametrize(
    "texts",
    [
        ("accuracy>=1.01",),
        ("matthews<=-1.5",),
        ("perplexity<=0.5",),
        ("params<=-1",),
        ("params>=6", "params<=9", "params<=5"),
        ("params>=1", "params<=5", "params>=7"),
    ],
)
def test_what_no_result_keeps_is_refused(texts: tuple[str, ...]) -> None:
    with pytest.raises(IllegalInput, match=texts[0].split("=")[0][:-1]):
        refuse_impossible_bounds(bounds(*texts))
