"""Every design of a space reads all of its weights from one set, and the largest design is the plain model."""

from collections.abc import Callable

import pytest
import torch

from formwright.arch.card import Card
from formwright.arch.declared import tensors_of
from formwright.core.rng import derive
from formwright.nn.build import build, skeleton
from formwright.nn.deploy.interface import random_inputs
from formwright.nn.inherit import InheritedWeights, extract, inherit, run
from formwright.space.zoo import load_space
from formwright.supernet.hull import find_hull

Weights = dict[str, torch.Tensor]
Read = Callable[[Card], InheritedWeights]

# spaces whose designs are cuts of their largest one
SMALL = [
    "autoformer-nano",
    "autoformer-nano-28",
    "autotinybert-kd-nano",
    "autotinybert-nano",
    "gpt-nano",
    "hat-nano",
    "lighthubert-nano",
    "lts-nano",
    "supershaper-nano",
]
LARGE = ["autoformer-tiny", "autotinybert", "elastic", "hat", "lighthubert-small", "supershaper"]
ALIKE = ["autoformer-base", "autoformer-small", "autotinybert-kd", "lighthubert-base", "lts"]  # with other sizes
EVERY = [
    *SMALL,
    *(pytest.param(name, marks=pytest.mark.slow) for name in LARGE),
    *(pytest.param(name, marks=[pytest.mark.slow, pytest.mark.long]) for name in ALIKE),
]
DESIGNS = 200


def inputs_of(card: Card, seed: int = 0) -> tuple[torch.Tensor | None, ...]:
    """Draw what a model reads, in the order of its arguments."""
    given = random_inputs(card, 2, 9, torch.Generator().manual_seed(seed))
    first = next(given[name] for name in ("input_ids", "pixel_values", "input_features") if name in given)
    others = ("attention_mask", "token_type_ids", "decoder_input_ids", "decoder_attention_mask")
    return first, *(given.get(name) for name in others)


def reader(whole: Card, weights: Weights) -> Read:
    return lambda card: inherit(weights, whole, card)


@pytest.mark.parametrize("name", EVERY)
def test_random_designs_are_complete(name: str) -> None:
    space = load_space(name)
    whole = find_hull(space).largest
    read = reader(whole, dict(skeleton(whole).named_parameters()))
    for turn in range(DESIGNS):
        card = space.card(space.sample(derive(turn, "every space"), "gene"))
        found = read(card)
        assert not found.missing
        assert {key: tuple(tensor.shape) for key, tensor in found.weights.items()} == {
            key: tensor.shape for key, tensor in tensors_of(card).items()
        }


@pytest.mark.parametrize("name", EVERY)
def test_the_largest_design_is_the_plain_model(name: str) -> None:
    whole = find_hull(load_space(name)).largest
    model = build(whole).eval()
    inputs = inputs_of(whole)
    found = reader(whole, dict(model.named_parameters()))(whole)
    with torch.no_grad():
        assert torch.equal(run(skeleton(whole).eval(), found, *inputs).hidden, model(*inputs).hidden)


@pytest.mark.parametrize("name", SMALL)
def test_designs_run_from_shared_weights_as_models_of_their_own(name: str) -> None:
    space = load_space(name)
    whole = find_hull(space).largest
    read = reader(whole, dict(build(whole).named_parameters()))
    for turn in range(4):
        card = space.card(space.sample(derive(turn, "models of their own"), "gene"))
        inputs = inputs_of(card, turn)
        found = read(card)
        shared = run(skeleton(card).eval(), found, *inputs).hidden
        assert torch.equal(shared, extract(found, card).eval()(*inputs).hidden)
        shared.square().mean().backward()  # gradients flow, through copies too
