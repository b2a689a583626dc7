from dataclasses import FrozenInstanceError

import pytest
from numpy.random import default_rng
from tests.cost.cases import CARDS

from formwright.core.errors import IllegalInput, UnknownName
from formwright.cost import (
    COSTS,
    all_costs,
    counted_costs,
    electra_flops,
    is_measured,
    limit,
    macs,
    params,
    params_attention,
    params_body,
    params_with_mlm_head,
)
from formwright.space.zoo import load_card, load_space

BERT = load_card("bert-tiny")
NAMES = [
    "autoformer", "electra", "flops", "macs", "params", "params-attention", "params-body", "params-with-mlm-head",
    "vitas",
]  # fmt: skip
FLEXIBERT = load_space("flexibert")


def test_conventions_are_known_by_the_names_they_give_themselves() -> None:
    assert counted_costs() == NAMES
    measured = ["latency_ms", "onnx_batch8_ms", "writing_30x5_ms"]
    assert COSTS.names() == sorted([*NAMES, *measured])
    assert all(is_measured(name) and COSTS.get(name).name == name for name in measured)
    for name in NAMES:
        convention = COSTS.get(name)
        assert convention.name == name
        assert convention.unit in {"parameters", "multiply-accumulates", "operations"}
        assert convention.about


def test_each_name_counts_what_it_says() -> None:
    assert all_costs(BERT, 40) == {
        "electra": electra_flops(BERT, 40),
        "flops": 2 * macs(BERT, 40),
        "macs": macs(BERT, 40),
        "params": params(BERT),
        "params-attention": params_attention(BERT),
        "params-body": params_body(BERT),
        "params-with-mlm-head": params_with_mlm_head(BERT),
    }


def test_a_count_is_exact_has_a_unit_and_a_default_length() -> None:
    measure = COSTS.get("macs")(BERT, 40)
    assert (measure.value, measure.unit, measure.interval) == (macs(BERT, 40), "multiply-accumulates", None)
    assert type(measure.value) is int
    assert COSTS.get("macs")(BERT).value == macs(BERT, 128)
    assert all_costs(BERT) == all_costs(BERT, 128)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("length", [0, -3])
def test_sentences_without_tokens_are_refused(name: str, length: int) -> None:
    with pytest.raises(IllegalInput, match=f"at least 1, not {length}"):
        COSTS.get(name)(BERT, length)
    with pytest.raises(IllegalInput, match=f"at least 1, not {length}"):
        all_costs(BERT, length)


@pytest.mark.parametrize(
    ("card", "missing"),
    [
        ("patches", {"electra", "params-with-mlm-head", "vitas"}),
        ("mixed", {"autoformer", "electra", "vitas"}),
        ("translation", {"autoformer", "electra", "vitas"}),
    ],
)
def test_conventions_that_do_not_know_a_design_are_left_out(card: str, missing: set[str]) -> None:
    assert set(all_costs(CARDS[card])) == set(NAMES) - missing


def test_faults_of_conventions() -> None:
    with pytest.raises(IllegalInput, match="ELECTRA's counter"):
        COSTS.get("electra")(CARDS["mixed"])
    with pytest.raises(UnknownName, match=r"no cost called 'parms'. Nearest: 'params'. .*`formwright list costs`"):
        COSTS.get("parms")
    with pytest.raises(FrozenInstanceError):
        COSTS.get("params").name = "other"  # type: ignore[misc]


def test_a_convention_that_cannot_be_loaded_is_not_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        def names(self) -> list[str]:
            return ["broken"]

        def get(self, name: str) -> None:
            raise IllegalInput(f"the cost {name!r} cannot be loaded")

    monkeypatch.setattr("formwright.cost.conventions.COSTS", Broken())
    with pytest.raises(IllegalInput, match="the cost 'broken' cannot be loaded"):
        all_costs(load_card("bert-tiny"))


def test_a_limit_is_a_name_and_a_test_of_cards() -> None:
    name, holds = limit("params<=5e6")
    assert name == "params<=5e6"
    assert holds(load_card("bert-tiny"))
    assert not holds(load_card("bert-mini"))


@pytest.mark.parametrize(("shift", "held"), [(-1, False), (0, True), (1, True)])
def test_the_limit_itself_is_allowed(shift: int, held: bool) -> None:
    card = load_card("bert-base")
    assert limit(f"params<={params(card) + shift}")[1](card) is held
    assert limit(f"params>={params(card) - shift}")[1](card) is held


def test_operations_are_counted_at_the_length_asked_for() -> None:
    card = load_card("bert-base")
    bound = f"macs<={macs(card, 64)}"
    assert limit(bound, length=64)[1](card)
    assert not limit(bound)[1](card)
    assert limit(f"macs<={macs(card, 128)}")[1](card)


@pytest.mark.parametrize("text", ["params:min", "macs:max"])
def test_a_goal_is_no_limit(text: str) -> None:
    with pytest.raises(IllegalInput, match=f"'{text}'"):
        limit(text)


@pytest.mark.parametrize("text", ["params", "params<5", "params<=many", "params<=inf", ""])
def test_what_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(IllegalInput):
        limit(text)


def test_an_unknown_cost_is_named_at_once() -> None:
    with pytest.raises(UnknownName, match=r"'parameters'. Nearest: 'params"):
        limit("parameters<=5e6")


def test_every_operator_of_a_restricted_space_obeys_the_limit() -> None:
    space = FLEXIBERT.restrict(*limit("params<=1e7"))
    rng = default_rng(0)
    designs = [space.sample(rng) for _ in range(50)]
    children = [space.mutate(design, rng) for design in designs]
    crossed = [space.crossover(*pair, rng) for pair in zip(designs, children, strict=True)]
    near = list(space.neighbours(designs[0]))
    for design in [*designs, *children, *crossed, *near]:
        assert params(space.card(design)) <= 10_000_000
        assert space.contains(design)


def test_limits_add_up_and_count() -> None:
    small = FLEXIBERT.restrict(*limit("params<=1e7"))
    smaller = small.restrict(*limit("macs<=2e8"))
    costs = [(params(card), macs(card)) for card in map(FLEXIBERT.card, FLEXIBERT.enumerate())]
    assert small.count() == sum(size <= 1e7 for size, _ in costs) > 0
    assert smaller.count() == sum(size <= 1e7 and work <= 2e8 for size, work in costs) > 0
    assert smaller.count() < small.count() < FLEXIBERT.count()
