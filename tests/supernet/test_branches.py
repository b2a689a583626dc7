from dataclasses import replace

import pytest
from tests.supernet.branched import QK, QKV, QP, card, random_cards
from tests.supernet.small import VIT

from formwright.arch.card import Card
from formwright.arch.ops import LightweightConvolution, OpGraph
from formwright.arch.primitives import INPUTS
from formwright.core.errors import IllegalInput
from formwright.core.rng import derive
from formwright.space.zoo import load_card, load_space
from formwright.space.zoo.autobert_zero import LAYER_2, LAYER_12
from formwright.supernet.branches import LARGEST, Branches, shared_names


def wider(design: Card) -> Card:
    assert design.encoder is not None
    layers = tuple(replace(layer, feed_forward=(128,)) for layer in design.encoder.layers)  # type: ignore[type-var]
    return replace(design, encoder=replace(design.encoder, layers=layers))


def mixers(design: Card) -> list[object]:
    assert design.encoder is not None
    return [layer.mixer for layer in design.encoder.layers]  # type: ignore[union-attr]


def test_one_branch_has_all_inputs_and_the_other_the_largest_kernel() -> None:
    branches = Branches.of(card(QK, 3))
    for mixer in mixers(branches.attention):
        assert isinstance(mixer, OpGraph)
        assert (mixer.inputs, mixer.heads, mixer.head_width) == (INPUTS, 2, 8)
    assert mixers(branches.convolution) == [LightweightConvolution(LARGEST, 2)] * 2
    assert LARGEST == 65


def test_every_design_of_a_space_has_the_same_branches() -> None:
    assert len({Branches.of(design) for design in (*random_cards(30), card(QK, QP), card(3, 5))}) == 1


def test_the_designs_of_the_published_space_have_branches() -> None:
    assert Branches.of(LAYER_2) == Branches.of(LAYER_12)
    space = load_space("autobert-zero-nano")
    first, second = (Branches.of(space.card(space.sample(derive(seed)))) for seed in range(2))
    assert first == second


def test_around_a_design_each_layer_is_all_of_its_own_branch() -> None:
    branches = Branches.of(card(QK, 3), 9)
    around = mixers(branches.around(card(5, QKV)))
    assert around == [LightweightConvolution(9, 2), mixers(branches.attention)[1]]
    assert branches.around(branches.attention) == branches.attention
    assert branches.around(branches.convolution) == branches.convolution


def test_tensors_of_a_mixer_have_the_name_of_its_branch() -> None:
    names = shared_names(card(QK, 3))
    layers = "transformer.encoder.layers"
    assert names[f"{layers}.0.mixer.output.weight"] == f"attention/{layers}.0.mixer.output.weight"
    assert names[f"{layers}.1.mixer.output.weight"] == f"convolution/{layers}.1.mixer.output.weight"
    assert names[f"{layers}.1.mixer.kernel"] == f"convolution/{layers}.1.mixer.kernel"
    common = [name for name, shared in names.items() if name == shared]
    assert {"head.bias", f"{layers}.0.mixer_norm.weight", f"{layers}.1.feed_forward.maps.0.weight"} <= set(common)
    assert not any(".mixer." in name for name in common)
    assert len(set(names.values())) == len(names)


def test_layers_of_other_kinds_are_refused() -> None:
    with pytest.raises(IllegalInput, match=r"layer 0 is of the kind attention; .* op-graph or a lightweight"):
        Branches.of(load_card("bert-tiny"))
    mixed = card(QK, 3)
    assert mixed.encoder is not None
    foreign = load_card("bert-tiny").encoder
    assert foreign is not None
    layers = (mixed.encoder.layers[0], replace(foreign.layers[0], width=16))
    with pytest.raises(IllegalInput, match="layer 1 is of the kind attention"):
        Branches.of(replace(mixed, encoder=replace(mixed.encoder, layers=layers)))
    with pytest.raises(IllegalInput, match="by encoders of text, not by a vision design"):
        Branches.of(VIT)


def test_designs_of_another_depth_are_refused() -> None:
    with pytest.raises(IllegalInput, match="the design has 3 layers, but weights are shared in 2"):
        Branches.of(card(QK, 3)).around(card(QK, 3, 3))


def test_samples_of_a_space_have_branches_in_common() -> None:
    assert Branches.common_to([card(QK, 3), card(5, QP)]) == Branches.of(card(QK, 3))


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
