"""What a causal model says of a token never depends on the tokens after it."""

import pytest
import torch
from tests.arch.random_cards import random_card
from tests.nn.cases import decoders, layers_of, stack, translators
from tests.nn.helpers import close, mask_of, random_inputs
from tests.nn.test_batching import model_of
from torch import Tensor

from formwright.arch.card import Card
from formwright.core.rng import derive
from formwright.nn.settings import Settings
from formwright.nn.transformer import Transformer

TOKENS = 12
CARDS = {**decoders(), **{f"translator: {name}": card for name, card in translators().items()}}


def hidden(model: Transformer, ids: Tensor, mask: Tensor | None) -> Tensor:
    card, dtype = model.card, next(model.parameters()).dtype
    if card.family != "encoder-decoder":
        return model(ids, mask).hidden  # type: ignore[no-any-return]
    source = random_inputs(card.stacks[0], 2, 8, seed=4, dtype=dtype)
    return model(source, mask_of([8, 5], 8), targets=ids, targets_mask=mask).hidden  # type: ignore[no-any-return]


@torch.no_grad()
def looks_ahead(model: Transformer, *, changes: bool = True) -> list[str]:
    """List from where on a changed future changes the past; also say so if it does not change the future."""
    ids, other = (random_inputs(model.card.stacks[-1], 2, TOKENS, seed=seed) for seed in (1, 2))
    faults = []
    for mask in (None, mask_of([TOKENS, 9], TOKENS)):
        before = hidden(model, ids, mask)
        for since in (1, 4, 8):
            after = hidden(model, torch.cat((ids[:, :since], other[:, since:]), 1), mask)
            if not close(after[:, :since], before[:, :since], 1e-6):
                faults.append(f"sees beyond {since}")
            if changes and close(after[:, since:], before[:, since:], 1e-6):
                faults.append(f"sees nothing from {since}")
    return faults


@pytest.mark.parametrize("name", CARDS)
def test_the_future_leaves_the_past_as_it_was(name: str) -> None:
    assert looks_ahead(model_of(CARDS[name])) == []


@pytest.mark.parametrize("name", ["sdp, pre", "wma, relative values, post", "sdp, relative, cell"])
def test_attention_step_by_step_does_not_look_ahead(name: str) -> None:
    assert looks_ahead(model_of(CARDS[name], settings=Settings(eager=True))) == []


@pytest.mark.parametrize("kernel", range(1, 8))
def test_convolutions_of_every_size_do_not_look_ahead(kernel: int) -> None:
    for layer in layers_of(kernel):
        assert looks_ahead(model_of(Card(decoder=stack((layer,), causal=True)))) == [], layer


@torch.no_grad()
@pytest.mark.parametrize("kernel", range(2, 8))
def test_the_same_convolutions_do_look_ahead_in_an_encoder(kernel: int) -> None:
    for layer in layers_of(kernel):
        model = model_of(Card(stack((layer,))))
        ids, other = (random_inputs(model.card.stacks[-1], 2, TOKENS, seed=seed) for seed in (1, 2))
        before, after = (hidden(model, each, None) for each in (ids, torch.cat((ids[:, :-1], other[:, -1:]), 1)))
        assert not close(after[:, -2], before[:, -2], 1e-6), layer


def test_random_decoders_do_not_look_ahead() -> None:
    rng = derive(0, "causality")
    for index in range(30):
        card = random_card(rng, ("decoder", "encoder-decoder")[index % 2], most_layers=3)
        assert looks_ahead(model_of(card, torch.float64), changes=False) == [], card.to_json()
