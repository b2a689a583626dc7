from dataclasses import FrozenInstanceError

import pytest
from tests.cost.cases import CARDS

from formwright.core.errors import IllegalInput, UnknownName
from formwright.cost import (
    COSTS,
    all_costs,
    electra_flops,
    macs,
    params,
    params_attention,
    params_body,
    params_with_mlm_head,
)
from formwright.space.zoo import load_card

BERT = load_card("bert-tiny")
NAMES = ["electra", "flops", "macs", "params", "params-attention", "params-body", "params-with-mlm-head"]


def test_conventions_are_known_by_the_names_they_give_themselves() -> None:
    assert COSTS.names() == NAMES
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


def test_a_count_is_exact_and_has_a_unit() -> None:
    measure = COSTS.get("macs")(BERT, 40)
    assert (measure.value, measure.unit, measure.interval) == (macs(BERT, 40), "multiply-accumulates", None)
    assert type(measure.value) is int


def test_sentences_are_128_tokens_long_unless_said_otherwise() -> None:
    assert COSTS.get("macs")(BERT).value == macs(BERT, 128)
    assert all_costs(BERT) == all_costs(BERT, 128)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("length", [0, -3])
def test_sentences_without_tokens_are_refused(name: str, length: int) -> None:
    with pytest.raises(IllegalInput, match=f"at least one token, not {length}"):
        COSTS.get(name)(BERT, length)
    with pytest.raises(IllegalInput, match=f"at least one token, not {length}"):
        all_costs(BERT, length)


@pytest.mark.parametrize(
    ("card", "missing"),
    [("patches", {"electra", "params-with-mlm-head"}), ("mixed", {"electra"}), ("translation", {"electra"})],
)
def test_conventions_that_do_not_know_a_design_are_left_out(card: str, missing: set[str]) -> None:
    assert set(all_costs(CARDS[card])) == set(NAMES) - missing


def test_a_convention_made_for_other_designs_says_so() -> None:
    with pytest.raises(IllegalInput, match="ELECTRA's counter knows"):
        COSTS.get("electra")(CARDS["mixed"])


def test_an_unknown_cost_has_a_nearest_name() -> None:
    with pytest.raises(UnknownName, match=r"no cost called 'parms'. Nearest: 'params'. .*`formwright list costs`"):
        COSTS.get("parms")


def test_conventions_are_values() -> None:
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
