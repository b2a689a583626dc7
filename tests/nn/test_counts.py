"""What the card promises is what torch builds and runs: parameters and multiply-accumulate operations, exactly."""

from functools import lru_cache
from typing import Any

import pytest
import torch
from tests.arch.random_cards import FAMILIES, random_card
from tests.cost.cases import CARDS as COUNTED
from tests.nn.helpers import hollow
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from formwright.arch.card import Card
from formwright.arch.embeddings import PatchEmbedding, TokenEmbedding
from formwright.arch.layers import Stack
from formwright.arch.ops import DynamicConvolution
from formwright.core.rng import derive
from formwright.cost import macs, params
from formwright.nn.settings import Settings
from formwright.space.zoo import CARDS, SPACES, load_card, load_space

LENGTH = 12


def built_params(card: Card) -> int:
    """Count the parameters that torch holds, a shared one once."""
    return sum(parameter.numel() for parameter in hollow(card).parameters())


def _blank(stack: Stack, length: int) -> Tensor:
    embedding = stack.embedding
    if isinstance(embedding, TokenEmbedding):
        return torch.zeros(1, length, dtype=torch.long, device="meta")
    if isinstance(embedding, PatchEmbedding):
        return torch.zeros(1, embedding.channels, embedding.image, embedding.image, device="meta")
    return torch.zeros(1, length, embedding.features, device="meta")


@torch.no_grad()
def counted_macs(card: Card, length: int) -> float:
    """Run a model without memory under torch's counter; attention runs step by step, the fused one is not counted."""
    model = hollow(card, Settings(eager=True)).eval()
    more: dict[str, Any] = {}
    if card.encoder is not None and card.decoder is not None:
        more["targets"] = _blank(card.decoder, length)
    with torch.device("meta"), FlopCounterMode(display=False) as counter:
        output = model(_blank(card.stacks[0], length), **more)
        if model.classes is not None:
            model.classes(output.hidden[:, 0])
    return float(counter.get_total_flops()) / 2


@lru_cache(maxsize=1)
def random_cards() -> list[Card]:
    rng = derive(0, "counts")
    return [random_card(rng, FAMILIES[index % len(FAMILIES)]) for index in range(500)]


def samples(name: str) -> list[Card]:
    space, rng = load_space(name), derive(0, "counts", name)
    return [space.card(space.sample(rng)) for _ in range(3)]


def wrong_params(cards: list[Card]) -> list[str]:
    return [card.canonical.decode() for card in cards if built_params(card) != params(card) - card.idle]


def run_macs(card: Card, length: int) -> float:
    """Count what a card promises, with its dynamic kernels as they are run: laid out over all tokens, in one product.

    Where a position term is added to them, the product is the term's own.
    """
    more = 0
    for stack in card.stacks:
        tokens = stack.embedding.tokens if isinstance(stack.embedding, PatchEmbedding) else length
        for _, one in (found for layer in stack.layers for found in layer.operations):
            if isinstance(one, DynamicConvolution):
                more += one.heads * one.head_width * tokens * ((0 if one.relative else tokens) - one.kernel)
    return macs(card, length) + more


def wrong_macs(cards: list[Card], length: int) -> list[str]:
    return [card.canonical.decode() for card in cards if counted_macs(card, length) != run_macs(card, length)]


def test_random_designs_are_counted_right() -> None:
    assert (wrong_params(random_cards()[:60]), wrong_macs(random_cards()[:20], LENGTH)) == ([], [])


@pytest.mark.parametrize("name", COUNTED)
def test_designs_of_every_kind_are_counted_right(name: str) -> None:
    assert (wrong_params([COUNTED[name]]), wrong_macs([COUNTED[name]], 13)) == ([], [])


def test_published_designs_have_the_parameters_that_their_cards_say() -> None:
    assert wrong_params([load_card(name) for name in CARDS.names()]) == []


@pytest.mark.slow
@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.long) for part in range(1, 10))])
def test_500_random_designs_are_counted_right(part: int) -> None:
    assert wrong_params(random_cards()[part::10]) == []
    assert wrong_macs(random_cards()[part::10], LENGTH) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", CARDS.names())
def test_published_designs_take_the_operations_that_their_cards_say(name: str) -> None:
    assert wrong_macs([load_card(name)], 24) == []


EXAMPLES = ("autobert-zero-nano", "evolved-transformer-nano", "flexibert-nano", "hat", "supershaper")


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [one if one in EXAMPLES else pytest.param(one, marks=pytest.mark.long) for one in SPACES.names()]
)
def test_samples_of_published_spaces_are_counted_right(name: str) -> None:
    assert (wrong_params(samples(name)), wrong_macs(samples(name), 24)) == ([], [])
