import re

import pytest

from formwright.core.records import Objective, Observation, Request, Trial
from formwright.search.levels import converged, faults_of, usual_levels
from formwright.space import Choice, Record, Repeat, Space
from formwright.space.zoo import load_space
from formwright.testing.spaces import Build, small, tiny

ACCURACY = (Objective.parse("accuracy:max"),)
CARD = small().card(next(small().enumerate()))


def trials(*scores: float | None) -> list[Trial]:
    """Make finished trials with these accuracies; None stands for one that failed."""
    return [
        Trial(number, Request(CARD), "failed", reason="diverged")
        if score is None
        else Trial(number, Request(CARD), "finished", Observation({"accuracy": score, "params": 1.0}))
        for number, score in enumerate(scores)
    ]


def test_lists_are_freed_from_the_outer_to_the_inner() -> None:
    assert usual_levels(load_space("flexibert-nano-s1star")) == (
        {"layers": 2, "layers.feed_forward": 3},
        {"layers.feed_forward": 3},
        {},
    )
    assert usual_levels(load_space("flexibert-nano-s1")) == ({"layers": 2}, {})
    assert usual_levels(tiny()) == ({"layers": 2}, {})


def test_a_space_without_lists_has_one_level() -> None:
    plain = Space("plain", Record.of(width=Choice((1, 2))), Build())
    assert usual_levels(plain) == ({},)
    single = Space("single", Record.of(layers=Repeat(Choice((1, 2)), 1)), Build())
    assert usual_levels(single) == ({},)


def test_it_is_over_when_so_many_trials_bettered_nothing() -> None:
    assert converged(trials(0.5, 0.6, 0.6, 0.55), ACCURACY, 2, 1e-4) == 4
    assert converged(trials(0.5, 0.6, 0.6, 0.7, 0.6), ACCURACY, 2, 1e-4) is None
    assert converged([], ACCURACY, 1, 1e-4) is None


def test_a_gain_within_the_tolerance_is_none() -> None:
    assert converged(trials(0.5, 0.50005, 0.50009), ACCURACY, 2, 1e-4) == 3
    assert converged(trials(0.5, 0.50005, 0.50019), ACCURACY, 2, 1e-4) is None


def test_warming_up_and_failures_do_not_count() -> None:
    assert converged(trials(0.5, 0.4, 0.4, 0.4), ACCURACY, 2, 1e-4, warmup=2) == 4
    assert converged(trials(0.5, None, None, 0.4, None), ACCURACY, 2, 1e-4) is None
    # two failed random designs are replaced by two more, so that patience begins with the fifth trial
    assert converged(trials(None, 0.5, None, 0.4, 0.4), ACCURACY, 2, 1e-4, warmup=2) is None
    assert converged(trials(None, 0.5, None, 0.4, 0.4, 0.4), ACCURACY, 2, 1e-4, warmup=2) == 6
    pending = [Trial(0, Request(CARD)), *trials(0.5, 0.4, 0.4)]
    assert converged(pending, ACCURACY, 2, 1e-4, warmup=2) == 4  # what is under way is replaced by nothing


def test_any_of_several_goals_may_be_bettered_and_limits_must_be_kept() -> None:
    both = (*ACCURACY, Objective.parse("params:min"))
    assert converged(trials(0.5, 0.6, 0.7), both, 2, 1e-4) is None
    assert converged(trials(0.5, 0.4, 0.4), both, 2, 1e-4) == 3
    limited = (*ACCURACY, Objective.parse("accuracy<=0.55"))
    assert converged(trials(0.5, 0.6, 0.7), limited, 2, 1e-4) == 3


@pytest.mark.parametrize(
    ("levels", "shares", "options", "fault"),
    [
        ([], None, {}, r"levels is \[\]"),
        ("layers", None, {}, "levels is 'layers'"),
        ([{"layers": 0}], None, {}, "levels is"),
        ([{"layers": "two"}], None, {}, "levels is"),
        ([{"layers": True}], None, {}, "levels is"),
        ([{}, {}], [1.0], {}, "a list of 2 numbers above 0"),
        ([{}, {}], [1.0, 0.0], {}, "a list of 2 numbers above 0"),
        ([{}], None, ["k1"], r"options is \['k1'\]"),
        ([{}], None, {"trials": 3}, "options is"),
    ],
)
def test_faults_are_told(levels: object, shares: object, options: object, fault: str) -> None:
    (sentence,) = faults_of(levels, shares, options, small())
    assert re.search(fault, sentence)


def test_what_is_right_has_no_faults() -> None:
    assert faults_of([{"layers": 2}, {}], (1, 0.5), {"k1": 0.3}, small()) == []


def test_levels_of_another_space_are_told_by_all_their_names() -> None:
    *names, advice = faults_of([{"layer": 2}, {"blocks": 3}, {"layers": 2, "layer": 1}], None, {}, small())
    assert names == [
        "no list of space 'small' is called 'layer'. Nearest: 'layers'.",
        "no list of space 'small' is called 'blocks'.",
    ]
    assert advice.startswith("It has: layers. ")
    assert "levels=null" in advice
