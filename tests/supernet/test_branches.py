from collections.abc import Iterator, Mapping
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.supernet.branched import QK, QKV, QP, card, changed, random_cards, returned, same, store
from tests.supernet.small import VIT, sentences
from torch import Tensor

from formwright.arch.card import Card
from formwright.arch.ops import LightweightConvolution, OpGraph
from formwright.arch.primitives import INPUTS
from formwright.core.errors import IllegalInput
from formwright.core.rng import derive
from formwright.nn.build import build
from formwright.nn.inherit import InheritedWeights, extract
from formwright.nn.settings import Settings
from formwright.space.zoo import load_card, load_space
from formwright.space.zoo.autobert_zero import LAYER_2, LAYER_12
from formwright.supernet.branches import (
    HEAD,
    LARGEST,
    Branches,
    BranchStore,
    folded,
    fresh,
    seen_through,
    shared_names,
    taken,
    to_train,
    weights_of,
    without_matrices,
    written,
)


def wider(design: Card) -> Card:
    layers = tuple(replace(layer, feed_forward=(128,)) for layer in design.encoder.layers)  # type: ignore[type-var]
    return replace(design, encoder=replace(design.encoder, layers=layers))


def mixers(design: Card) -> list[object]:
    return [layer.mixer for layer in design.encoder.layers]  # type: ignore[union-attr]


def test_one_branch_has_all_inputs_and_the_other_the_largest_kernel() -> None:
    branches = Branches.of(card(QK, 3))
    for mixer in mixers(branches.attention):
        assert isinstance(mixer, OpGraph)
        assert (mixer.inputs, mixer.heads, mixer.head_width) == (INPUTS, 2, 8)
    assert mixers(branches.convolution) == [LightweightConvolution(LARGEST, 2)] * 2
    assert LARGEST == 65


def test_all_designs_of_a_space_have_the_same_branches() -> None:
    assert len({Branches.of(design) for design in (*random_cards(30), card(QK, QP), card(3, 5))}) == 1
    assert Branches.of(LAYER_2) == Branches.of(LAYER_12)
    space = load_space("autobert-zero-nano")
    first, second = (Branches.of(space.card(space.sample(derive(seed)))) for seed in range(2))
    assert first == second
    assert Branches.common_to([card(QK, 3), card(5, QP)]) == Branches.of(card(QK, 3))


def test_mixers_of_one_branch_share_and_the_rest_is_common() -> None:
    layers = "transformer.encoder.layers"
    names, others = shared_names(card(QK, 3)), shared_names(card(7, QKV))
    for place, kind in enumerate(("op-graph", "lightweight-convolution")):
        name = f"{layers}.{place}.mixer.output.weight"
        assert names[name].startswith(f"{name}@")
        assert kind in names[name]
        assert names[name] != others[name]
    assert names[f"{layers}.1.mixer.kernel"] == shared_names(card(QP, 9))[f"{layers}.1.mixer.kernel"]
    common = {name for name, shared in names.items() if name == shared}
    assert {"head.bias", f"{layers}.0.mixer_norm.weight", f"{layers}.1.feed_forward.maps.0.weight"} <= common
    assert f"{layers}.0.mixer.output.weight" not in common
    assert len(set(names.values())) == len(names)


def test_a_design_of_other_layers_does_not_fit() -> None:
    with pytest.raises(IllegalInput, match=r"nothing that fits .*layers\.2"):
        taken(store(), card(QK, 3, 3))


def test_layers_of_other_kinds_are_refused() -> None:
    with pytest.raises(IllegalInput, match=r"layer 0 is of the kind attention; .* op-graph or a lightweight"):
        Branches.of(load_card("bert-tiny"))
    mixed = card(QK, 3)
    assert mixed.encoder is not None
    foreign = load_card("bert-tiny").encoder
    layers = (mixed.encoder.layers[0], replace(foreign.layers[0], width=16))
    with pytest.raises(IllegalInput, match="layer 1 is of the kind attention"):
        Branches.of(replace(mixed, encoder=replace(mixed.encoder, layers=layers)))
    with pytest.raises(IllegalInput, match="by encoders of text, not by a vision design"):
        Branches.of(VIT)


@pytest.mark.parametrize(
    ("other", "told"),
    [
        (card(QK, 3, 3), "two designs of this space have 2 and 3 layers: .*; choose another evaluator"),
        (wider(card(QK, 3)), "two designs of this space have layers of different sizes"),
        (card(QK, 4), "the kernel 4 of layer 1 is not in the centre of one of 9: .*; leave such kernels out"),
        (card(11, QK), "the kernel 11 of layer 0 is not in the centre of one of 9"),
    ],
)
def test_a_space_whose_designs_cannot_share_is_refused(other: Card, told: str) -> None:
    with pytest.raises(IllegalInput, match=told):
        Branches.common_to([card(QK, 3), card(5, QP), other], 9)


DESIGN = card(3, QK)
KERNEL = "transformer.encoder.layers.0.mixer.kernel"
CHANGE = "transformer.encoder.layers.0.mixer.change"
STILL = Settings(dropout=0.0)


def weights(change: float = 0.0) -> dict[str, Tensor]:
    """Give the weights of the design, with a matrix that is more or less far from the identity."""
    found = taken(store(), DESIGN)
    noise = torch.randn(3, 3, generator=torch.Generator().manual_seed(1))
    return {**found, CHANGE: noise * change}


def answer(given: dict[str, Tensor], plain: bool) -> Tensor:
    tokens, mask = sentences()
    if plain:
        model = extract(InheritedWeights(without_matrices(given), ()), DESIGN, STILL, HEAD)
    else:
        model = to_train(DESIGN, given, HEAD, STILL)
    scores: Tensor = model.eval()(tokens, mask)
    return scores


def test_a_matrix_is_the_same_for_all_channels_and_the_identity_changes_nothing() -> None:
    kernel = torch.randn(4, 5, generator=torch.Generator().manual_seed(0))
    assert seen_through(kernel, torch.zeros(5, 5)).equal(kernel)
    assert without_matrices(weights())[KERNEL].equal(weights()[KERNEL])
    generator = torch.Generator().manual_seed(0)
    kernel, change = (torch.randn(rows, 5, generator=generator) for rows in (4, 5))
    expected = torch.stack([channel @ (torch.eye(5) + change) for channel in kernel])
    assert seen_through(kernel, change).allclose(expected, atol=1e-5)
    assert not answer(weights(0.0), plain=True).equal(answer(weights(0.7), plain=True))


@pytest.mark.parametrize("change", [0.0, 0.7])
def test_a_model_in_training_and_the_plain_one_answer_alike(change: float) -> None:
    assert answer(weights(change), plain=False).equal(answer(weights(change), plain=True))


def test_weights_come_back_by_the_names_they_had() -> None:
    given = weights(0.7)
    found = weights_of(to_train(DESIGN, given, HEAD, STILL))
    assert found.keys() == given.keys()
    assert all(found[name].equal(given[name]) for name in given)


def test_a_model_in_training_leaves_what_it_was_given_alone() -> None:
    given = weights(0.7)
    before = {name: tensor.clone() for name, tensor in given.items()}
    model = to_train(DESIGN, given, HEAD, STILL)
    kept = weights_of(model)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(1.0)
    assert all(given[name].equal(before[name]) and kept[name].equal(before[name]) for name in given)


def test_kernel_and_matrix_learn_together() -> None:
    tokens, mask = sentences()
    model = to_train(DESIGN, weights(), HEAD, STILL)
    model(tokens, mask).square().sum().backward()
    gradients = {name: parameter.grad for name, parameter in model.named_parameters() if ".parametrizations." in name}
    assert len(gradients) == 2
    assert all(gradient is not None and gradient.any() for gradient in gradients.values())


LAYER = "transformer.encoder.layers"
KERNEL_NAME = f"{LAYER}.1.mixer.kernel"
STORED = shared_names(card(3, 3))[KERNEL_NAME]
START = store()
CARDS = (*random_cards(12), card(QK, 3), card(3, QP), card(9, 9))


def test_a_fresh_store_holds_both_branches_and_depends_on_the_seed_alone() -> None:
    branches = Branches.of(card(QK, 3), 9)
    assert same(fresh(branches, 0), fresh(branches, 0))
    assert not same(fresh(branches, 0), fresh(branches, 1))
    tensors = store().tensors
    inputs = {name for name in tensors if f"{LAYER}.1.mixer.inputs" in name and name.endswith("weight")}
    assert inputs == {f"{LAYER}.1.mixer.inputs.{letter}.weight" for letter in "QKVP"}
    assert tensors[STORED].shape == (2, 9)
    for part in ("gated.value", "gated.gate", "output"):
        assert shared_names(card(3, 3))[f"{LAYER}.1.mixer.{part}.weight"] in tensors
    outside = [name for name in tensors if ".mixer." not in name]
    attention = dict(build(branches.attention, head=HEAD).named_parameters())
    assert sorted(outside) == sorted(name for name in attention if ".mixer." not in name)
    matrices = {name: tensor for name, tensor in tensors.items() if name.endswith(".change")}
    assert sorted(len(one) for one in matrices.values()) == [1, 1, 3, 3, 5, 5, 7, 7]  # of each layer and smaller kernel
    assert not any(one.any() for one in matrices.values())


@pytest.mark.parametrize("design", CARDS)
def test_a_design_takes_all_weights_of_its_model(design: Card) -> None:
    weights = taken(store(), design)
    wanted = dict(build(design, head=HEAD).named_parameters())
    assert {name for name in weights if not name.endswith(".change")} == wanted.keys()
    assert all(weights[name].shape == parameter.shape for name, parameter in wanted.items())


def test_a_design_takes_views_of_the_inputs_it_uses() -> None:
    weights, tensors = taken(store(), card(QP, 3)), store().tensors
    for part in ("inputs.Q.weight", "inputs.P.bias", "output.weight"):
        assert weights[f"{LAYER}.0.mixer.{part}"].equal(tensors[shared_names(card(QP, 3))[f"{LAYER}.0.mixer.{part}"]])
    assert not any("inputs.K" in name or "inputs.V" in name for name in weights)
    given = store()
    owned = {tensor.untyped_storage().data_ptr() for tensor in given.tensors.values()}
    views = {name: view for name, view in taken(given, card(QK, 3)).items() if not name.endswith("change")}
    assert all(view.untyped_storage().data_ptr() in owned for view in views.values())


def test_a_small_kernel_is_the_centre_of_the_largest_and_seen_through_the_identity() -> None:
    weights, whole = taken(store(), card(QK, 3)), store().tensors[STORED]
    assert weights[KERNEL_NAME].equal(whole[:, 3:6])
    assert weights[f"{LAYER}.1.mixer.change"].equal(torch.zeros(3, 3))
    largest = taken(store(), card(QK, 9))
    assert largest[KERNEL_NAME].equal(whole)
    assert f"{LAYER}.1.mixer.change" not in largest


@pytest.mark.parametrize("design", CARDS)
def test_what_is_put_back_is_what_is_taken_again(design: Card) -> None:
    given = store()
    again = returned(given, design, taken(given, design))
    assert again.version == 1
    assert all(tensor.equal(again.tensors[name]) for name, tensor in given.tensors.items())
    assert again.tensors.keys() == given.tensors.keys()
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


def one_by_one(start: BranchStore, writes: list[tuple[Card, dict[str, Tensor]]]) -> BranchStore:
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
    table = replace(design.encoder.embedding, vocabulary=31)  # type: ignore[call-arg]
    with pytest.raises(IllegalInput, match="nothing that fits"):
        taken(store(), replace(design, encoder=replace(design.encoder, embedding=table)))
