from collections.abc import Iterator, Mapping
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.supernet.branched import QK, QKV, QP, card, changed, random_cards, same, store
from torch import Tensor

from formwright.arch.card import Card
from formwright.core.errors import IllegalInput
from formwright.core.rng import derive
from formwright.nn.build import build
from formwright.supernet.branch_store import Store, folded, fresh, returned, taken, written
from formwright.supernet.branches import HEAD, Branches

LAYER = "transformer.encoder.layers"
KERNEL = f"{LAYER}.1.mixer.kernel"
STORED = f"convolution/{KERNEL}"
START = store()
CARDS = (*random_cards(12), card(QK, 3), card(3, QP), card(9, 9))


def test_a_fresh_store_depends_on_the_seed_alone() -> None:
    branches = Branches.of(card(QK, 3), 9)
    assert same(fresh(branches, 0), fresh(branches, 0))
    assert not same(fresh(branches, 0), fresh(branches, 1))


def test_a_fresh_store_holds_both_branches_and_what_is_outside_once() -> None:
    tensors = store().tensors
    inputs = {name for name in tensors if f"{LAYER}.1.mixer.inputs" in name and name.endswith("weight")}
    assert inputs == {f"attention/{LAYER}.1.mixer.inputs.{letter}.weight" for letter in "QKVP"}
    assert tensors[STORED].shape == (2, 9)
    for part in ("gated.value", "gated.gate", "output"):
        assert f"convolution/{LAYER}.1.mixer.{part}.weight" in tensors
    outside = [name for name in tensors if "/" not in name]
    attention = dict(build(store().branches.attention, head=HEAD).named_parameters())
    assert sorted(outside) == sorted(name for name in attention if ".mixer." not in name)


@pytest.mark.parametrize("design", CARDS)
def test_a_design_takes_all_weights_of_its_model(design: Card) -> None:
    weights = taken(store(), design)
    wanted = dict(build(design, head=HEAD).named_parameters())
    assert {name for name in weights if not name.endswith(".change")} == wanted.keys()
    assert all(weights[name].shape == parameter.shape for name, parameter in wanted.items())


def test_an_attention_takes_the_projections_of_the_inputs_it_uses() -> None:
    weights, tensors = taken(store(), card(QP, 3)), store().tensors
    for part in ("inputs.Q.weight", "inputs.P.bias", "output.weight"):
        assert weights[f"{LAYER}.0.mixer.{part}"].equal(tensors[f"attention/{LAYER}.0.mixer.{part}"])
    assert not any("inputs.K" in name or "inputs.V" in name for name in weights)


def test_a_small_kernel_is_the_centre_of_the_largest_and_seen_through_the_identity() -> None:
    weights, whole = taken(store(), card(QK, 3)), store().tensors[STORED]
    assert weights[KERNEL].equal(whole[:, 3:6])
    assert weights[f"{LAYER}.1.mixer.change"].equal(torch.zeros(3, 3))
    largest = taken(store(), card(QK, 9))
    assert largest[KERNEL].equal(whole)
    assert f"{LAYER}.1.mixer.change" not in largest


def test_nothing_is_copied_when_weights_are_taken() -> None:
    given = store()
    owned = {tensor.untyped_storage().data_ptr() for tensor in given.tensors.values()}
    views = {name: view for name, view in taken(given, card(QK, 3)).items() if not name.endswith("change")}
    assert all(view.untyped_storage().data_ptr() in owned for view in views.values())


@pytest.mark.parametrize("design", CARDS)
def test_what_was_taken_and_put_back_is_what_was_there(design: Card) -> None:
    given = store()
    again = returned(given, design, taken(given, design))
    assert again.version == 1
    assert all(tensor.equal(again.tensors[name]) for name, tensor in given.tensors.items())
    new = again.tensors.keys() - given.tensors.keys()
    assert not any(again.tensors[name].any() for name in new)  # matrices that are the identity


@pytest.mark.parametrize("design", CARDS)
def test_what_was_put_back_is_taken_again(design: Card) -> None:
    weights = changed(taken(store(), design))
    again = taken(returned(store(), design, weights), design)
    assert again.keys() == weights.keys()
    assert all(again[name].equal(weights[name]) for name in weights)


@pytest.mark.parametrize("design", CARDS)
def test_what_a_design_does_not_use_stays_as_it_was(design: Card) -> None:
    given = store()
    before = {name: tensor.clone() for name, tensor in given.tensors.items()}
    weights = changed(taken(given, design))
    after, used = returned(given, design, weights), written(design, weights)
    for name, tensor in before.items():
        assert given.tensors[name].equal(tensor)  # nor is the store that was given changed
        if name not in used:
            assert after.tensors[name].equal(tensor)
        elif not name.endswith(".mixer.kernel"):
            assert not after.tensors[name].equal(tensor)


def test_a_small_kernel_is_written_to_the_centre_alone() -> None:
    design = card(QK, 5)
    before = store().tensors[STORED]
    after = returned(store(), design, changed(taken(store(), design))).tensors[STORED]
    assert after[:, 2:7].equal(before[:, 2:7] + 1)
    assert after[:, :2].equal(before[:, :2])
    assert after[:, 7:].equal(before[:, 7:])


def test_each_layer_and_size_has_a_matrix_of_its_own() -> None:
    design = card(3, 3)
    after = returned(store(), design, changed(taken(store(), design)))
    assert taken(after, card(3, 3))[f"{LAYER}.0.mixer.change"].equal(torch.ones(3, 3))
    assert taken(after, card(5, 5))[f"{LAYER}.0.mixer.change"].equal(torch.zeros(5, 5))
    weights = changed(taken(after, card(QK, 3)))
    last = returned(after, card(QK, 3), weights)
    assert taken(last, design)[f"{LAYER}.0.mixer.change"].equal(torch.ones(3, 3))
    assert taken(last, design)[f"{LAYER}.1.mixer.change"].equal(torch.full((3, 3), 2.0))


def one_by_one(start: Store, writes: list[tuple[Card, dict[str, Tensor]]]) -> Store:
    for design, weights in writes:
        start = returned(start, design, weights)
    return start


@given(st.lists(st.integers(0, len(CARDS) - 1), max_size=8), st.integers(0, 5))
def test_folding_is_one_writing_after_the_other(chosen: list[int], seed: int) -> None:
    # what is written does not follow from the store: trials side by side do not see each other
    writes = [
        (CARDS[index], changed(taken(START, CARDS[index]), float(derive(seed, place).random())))
        for place, index in enumerate(chosen)
    ]
    whole = folded(START, [written(design, weights) for design, weights in writes])
    assert same(whole, one_by_one(START, writes))
    assert whole.version == len(chosen)


class Counting(Mapping[str, Tensor]):
    """What a design writes, counting how often a tensor is asked for."""

    def __init__(self, tensors: Mapping[str, Tensor]) -> None:
        self.tensors, self.asked = tensors, list[str]()

    def __getitem__(self, name: str) -> Tensor:
        self.asked.append(name)
        return self.tensors[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.tensors)

    def __len__(self) -> int:
        return len(self.tensors)


def test_tensors_that_were_overwritten_are_not_read() -> None:
    writes = [Counting(written(card(QKV, QK), taken(store(), card(QKV, QK)))) for _ in range(3)]
    folded(store(), writes)
    assert [len(write.asked) for write in writes] == [0, 0, len(writes[-1])]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"mixer": 11}, "1.mixer.kernel"),
        ({"mixer": 4}, "1.mixer.kernel"),
        ({"feed_forward": (32,)}, "1.feed_forward.maps.0.weight"),
    ],
)
def test_what_does_not_fit_the_store_is_refused(change: dict[str, object], told: str) -> None:
    design = card(QK, 3)
    assert design.encoder is not None
    kernel = change.pop("mixer", 3)
    last = replace(card(QK, kernel).encoder.layers[1], **change)  # type: ignore[arg-type, union-attr, type-var]
    other = replace(design, encoder=replace(design.encoder, layers=(design.encoder.layers[0], last)))
    with pytest.raises(IllegalInput, match=f"nothing that fits .*{told}"):
        taken(store(), other)


def test_another_vocabulary_does_not_fit() -> None:
    design = card(QK, 3)
    assert design.encoder is not None
    table = replace(design.encoder.embedding, vocabulary=31)  # type: ignore[call-arg]
    with pytest.raises(IllegalInput, match="nothing that fits"):
        taken(store(), replace(design, encoder=replace(design.encoder, embedding=table)))
