"""Every design of a space reads all of its weights from one set, and the largest design is the plain model."""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import pytest
import torch

from formwright.arch.card import Card
from formwright.arch.declared import tensors_of
from formwright.arch.heads import HeadSpec
from formwright.arch.tensors import Tensor
from formwright.core.rng import derive
from formwright.nn.build import build, skeleton
from formwright.nn.deploy.interface import random_inputs
from formwright.nn.inherit import InheritedWeights, extract, inherit, run
from formwright.space.zoo import SPACES, load_space
from formwright.supernet.hull import find_hull
from formwright.supernet.library import Library, LibraryWeights, library_of, take_over

Weights = Mapping[str, torch.Tensor]
Read = Callable[[Weights, Card], InheritedWeights]

SMALL = {name for name in SPACES.names() if "-nano" in name}
# a new space is tested with the fast ones, until it is named here
SLOW = {
    "autobert-zero-nano",
    "autoformer-tiny",
    "autotinybert",
    "dynabert",
    "elastic",
    "flexibert",
    "hat",
    "lighthubert-small",
    "supershaper",
}
LONG = {  # some of them like others, but with other sizes
    "autobert-zero",
    "autoformer-base",
    "autoformer-small",
    "autotinybert-kd",
    "evolved-transformer",
    "evolved-transformer-nano",
    "flexibert-nano-s1",
    "flexibert-nano-s1star",
    "flexibert-s1",
    "flexibert-s1star",
    "lighthubert-base",
    "lts",
    "nas-bert",
}
HUGE = {"evolved-transformer"}  # its library has 21 billion numbers
HELD = {"evolved-transformer": 0.97}  # its joined widths double with every junction; of all others nothing is missing
DESIGNS = 200
HEADS = {"decoder": HeadSpec("causal-lm"), "encoder-decoder": HeadSpec("seq2seq-lm")}


def marked(names: set[str]) -> list[Any]:
    marks = dict.fromkeys(SLOW, pytest.mark.slow) | {name: [pytest.mark.slow, pytest.mark.long] for name in LONG}
    return [pytest.param(name, marks=marks.get(name, ())) for name in sorted(names)]


EVERY = set(SPACES.names())


def test_the_spaces_that_are_named_here_exist() -> None:
    assert SLOW | LONG | HUGE | HELD.keys() <= EVERY
    assert not SLOW & LONG


def inputs_of(card: Card, seed: int = 0) -> tuple[torch.Tensor | None, ...]:
    """Draw what a model reads, in the order of its arguments."""
    given = random_inputs(card, 2, 9, torch.Generator().manual_seed(seed))
    first = next(given[name] for name in ("input_ids", "pixel_values", "input_features") if name in given)
    others = ("attention_mask", "token_type_ids", "decoder_input_ids", "decoder_attention_mask")
    return first, *(given.get(name) for name in others)


def head_of(card: Card) -> HeadSpec:
    return HEADS.get(card.family, HeadSpec("sequence-classification", 3))


@lru_cache(maxsize=2)
def library(name: str) -> Library | None:
    """Give the library of a space, with a head as every training has; none where the largest design holds all."""
    hull = find_hull(load_space(name))
    return None if hull.whole else library_of(hull.space, head_of(hull.largest))


def stored(name: str) -> Mapping[str, Tensor]:
    """Give the tensors that all designs of a space read from."""
    held, largest = library(name), find_hull(load_space(name)).largest
    return tensors_of(largest, head_of(largest)) if held is None else held.tensors


def reader(name: str) -> Read:
    held, largest = library(name), find_hull(load_space(name)).largest
    if held is None:
        return lambda weights, card: inherit(weights, largest, card, head=head_of(card))
    return lambda weights, card: held.read(weights, tensors_of(card, head_of(card)))


def drawn(name: str, number: int, seed: str) -> list[Card]:
    space = load_space(name)
    return [space.card(space.sample(derive(turn, seed), ("gene", "design")[turn % 2])) for turn in range(number)]


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", marked(EVERY))
def test_random_designs_are_complete(name: str) -> None:
    read = reader(name)
    weights = {key: torch.empty(tensor.shape, device="meta") for key, tensor in stored(name).items()}
    complete = 0
    for card in drawn(name, DESIGNS, "every space"):
        found = read(weights, card)
        complete += not found.missing
        wanted = {key: tensor.shape for key, tensor in tensors_of(card, head_of(card)).items()}
        assert wanted.keys() == {*found.weights, *found.missing}
        assert all(tuple(tensor.shape) == wanted[key] for key, tensor in found.weights.items())
    assert complete >= HELD.get(name, 1) * DESIGNS


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", marked(EVERY - HUGE))
def test_the_largest_design_is_the_plain_model(name: str) -> None:
    whole = find_hull(load_space(name)).largest
    spec = head_of(whole)
    model = build(whole, head=spec, seed=8).eval()
    own: Weights = dict(model.named_parameters())
    if library(name) is not None:
        known, own = own, {key: torch.zeros(tensor.shape) for key, tensor in stored(name).items()}
        assert take_over(own, stored(name), known, tensors_of(whole, spec)) == len(known)
    inputs = inputs_of(whole)
    with torch.no_grad():
        found = run(skeleton(whole, head=spec).eval(), reader(name)(own, whole), *inputs)
        assert torch.equal(found, model(*inputs))


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", marked(SMALL))
def test_designs_run_from_shared_weights_as_models_of_their_own(name: str) -> None:
    held, whole = library(name), find_hull(load_space(name)).largest
    if held is None:
        own: Weights = dict(build(whole, head=head_of(whole)).named_parameters())
    else:
        own = dict(LibraryWeights.fresh(held, head_of(whole), None, 0, "width").named_parameters())
    for turn, card in enumerate(drawn(name, 4, "models of their own")):
        inputs, spec = inputs_of(card, turn), head_of(card)
        found = reader(name)(own, card)
        shared = run(skeleton(card, head=spec).eval(), found, *inputs)
        assert torch.equal(shared, extract(found, card, head=spec).eval()(*inputs))
        shared.square().mean().backward()  # gradients flow, through copies too
    assert any(weight.grad is not None for weight in own.values())
