import json
import math
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formwright.core.errors import IllegalInput
from formwright.core.records import (
    Budget,
    DataCard,
    History,
    Measure,
    Objective,
    Observation,
    Request,
    Spent,
    Trial,
    as_card,
)

FINITE = st.floats(allow_nan=False, allow_infinity=False)
NAMES = st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True)


@dataclass(frozen=True)
class Toy:
    """Stand in for a card, whose real type this package does not know."""

    digest: str

    def to_json(self) -> dict[str, Any]:
        return {"toy": self.digest}

    @classmethod
    def from_json(cls, data: Any) -> "Toy":
        return cls(data["toy"])


def trial(number: int, state: str, digest: str = "a") -> Trial:
    request = Request(Toy(digest), Budget(3), parent=0)
    if state == "finished":
        return Trial(
            number, request, "finished", Observation({"accuracy": 0.5}, Spent(1.5, 3, 10**12), {"weights": "w"})
        )
    return Trial(number, request, "failed", reason="diverged") if state == "failed" else Trial(number, request)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("accuracy:max", Objective("accuracy", "max")),
        ("latency_ms:min", Objective("latency_ms", "min")),
        ("params<=5e6", Objective("params", "min", 5e6)),
        (" accuracy >= 0.8 ", Objective("accuracy", "max", 0.8)),
        ("params<=5M", Objective("params", "min", 5e6)),
        ("latency_ms <= 5 ms", Objective("latency_ms", "min", 5.0)),
    ],
)
def test_objectives_are_read(text: str, expected: Objective) -> None:
    assert Objective.parse(text) == expected


UNREADABLE = "accuracy accuracy:up params<5 params<= params<=many <=5 a:max:min params=5 macs<=50% params<=nan"


@pytest.mark.parametrize("text", ["", "params<=1e999", "params<=5ms", "params>=inf", 3, None, *UNREADABLE.split()])
def test_an_unreadable_objective_is_refused(text: Any) -> None:
    with pytest.raises(IllegalInput):
        Objective.parse(text)


@given(NAMES, st.sampled_from(["max", "min"]), st.none() | FINITE)
def test_an_objective_is_written_as_it_is_read(name: str, direction: Any, bound: float | None) -> None:
    objective = Objective(name, direction, bound)
    assert Objective.parse(str(objective)) == objective


def test_a_bound_is_met_on_its_better_side() -> None:
    assert Objective.parse("params<=5").meets(5)
    assert not Objective.parse("params<=5").meets(5.1)
    assert Objective.parse("accuracy>=0.8").meets(0.8)
    assert not Objective.parse("accuracy>=0.8").meets(0.7)
    assert Objective.parse("accuracy:max").meets(-1)
    assert not Objective.parse("params<=5").meets(math.nan)


def test_budgets_and_measures() -> None:
    assert Budget.full() == Budget(None) == Budget()
    assert Budget.from_json(json.loads(json.dumps(Budget(300).to_json()))) == Budget(300)
    assert Measure(2**60 + 1, "parameters").value == 2**60 + 1  # integers stay exact


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: Objective("params", "min", math.nan), "params"),
        (lambda: Objective("params", "min", math.inf), "params"),
        (lambda: Objective("accuracy", "up"), "'max' or 'min'"),  # type: ignore[arg-type]
        (lambda: Budget(-1), "steps of a budget"),
        (lambda: Request(Toy("a"), parent=-3), "parent of a request"),
        (lambda: Measure(math.nan, "ms"), "a measure is nan"),
        (lambda: Measure(1.0, "ms", (2.0, 0.5)), "the lower end first"),
        *((lambda bad=bad: Observation({"a": 0.5, "loss": bad}), "'loss'.*failed") for bad in (math.inf, "0.9", True)),
    ],
)
def test_impossible_values_are_refused_by_name(make: Callable[[], Any], told: str) -> None:
    with pytest.raises(IllegalInput, match=told):
        make()


def test_an_observation_is_not_changed_from_outside() -> None:
    metrics = {"accuracy": 0.5}
    observation = Observation(metrics)
    metrics["accuracy"] = 0.9
    assert observation.metrics == {"accuracy": 0.5}


@given(st.dictionaries(NAMES, FINITE), st.integers(0, 10**20), st.dictionaries(NAMES, st.text()))
def test_observations_survive_json(metrics: dict[str, float], macs: int, artifacts: dict[str, str]) -> None:
    observation = Observation(metrics, Spent(0.5, 2, macs), artifacts)
    assert Observation.from_json(json.loads(json.dumps(observation.to_json()))) == observation


@pytest.mark.parametrize("state", ["pending", "finished", "failed"])
def test_trials_survive_json_and_pickle_and_are_hashable(state: str) -> None:
    one = trial(4, state)
    copy = Trial.from_json(json.loads(json.dumps(one.to_json())), Toy.from_json)
    assert copy == one == pickle.loads(pickle.dumps(one))
    assert hash(copy) == hash(one)


def test_a_stored_trial_with_other_fields_is_refused() -> None:
    data = trial(0, "finished").to_json()
    del data["observation"]["spent"]
    with pytest.raises(IllegalInput, match="a stored Observation must have the fields"):
        Trial.from_json(data, Toy.from_json)


def test_the_design_stays_out_of_json() -> None:
    request = Request(Toy("a"), design=("nested", 1))
    assert "design" not in request.to_json()
    assert Request.from_json(request.to_json(), Toy.from_json) == Request(Toy("a"))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"state": "lost"}, "'lost'"),
        ({"state": "finished"}, "exactly the finished trials have an observation"),
        ({"observation": Observation({})}, "exactly the finished trials have an observation"),
        ({"state": "failed"}, "exactly the failed trials have a reason"),
        ({"reason": "because"}, "exactly the failed trials have a reason"),
        ({"number": -1}, "the number of a trial is -1"),
    ],
)
def test_state_and_outcome_of_a_trial_agree(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(IllegalInput, match=message):
        Trial(**{"number": 0, "request": Request(Toy("a")), **wrong})


def test_history_sorts_trials_and_knows_every_digest() -> None:
    trials = (trial(0, "finished", "a"), trial(1, "failed", "b"), trial(2, "pending", "c"), trial(3, "finished", "a"))
    history = History(trials)
    assert [one.number for one in history.finished] == [0, 3]
    assert [one.number for one in history.pending] == [2]
    assert history.digests == {"a", "b", "c"}
    assert History().digests == frozenset()


def test_plain_data_are_one_design_whatever_their_order() -> None:
    one, other = DataCard({"layers": 2, "rate": [0.1, 1]}), DataCard({"rate": [0.1, 1], "layers": 2})
    assert one.digest == other.digest != DataCard({"layers": 2, "rate": [1, 0.1]}).digest
    assert as_card(one.data) == one == other
    assert as_card(one) is one
