"""A sentence's outputs depend neither on what it is batched with nor, in a causal model, on later tokens."""

from typing import Any

import pytest
import torch
from tests.arch.random_cards import random_card
from tests.nn.cases import decoders, encoders, layers_of, stack, translators
from tests.nn.helpers import close, filled, hollow, mask_of, random_inputs
from torch import Tensor

from formwright.arch.card import Card
from formwright.arch.layers import Stack
from formwright.core.rng import derive
from formwright.nn.build import build
from formwright.nn.settings import Settings
from formwright.nn.transformer import Output, Transformer
from formwright.space.zoo import load_space

LENGTHS = [1, 2, 7, 33]
PADDINGS = [0, 1, 6]
CARDS = {
    **{f"encoder: {name}": card for name, card in encoders().items()},
    **{f"decoder: {name}": card for name, card in decoders().items()},
    **{f"translator: {name}": card for name, card in translators().items()},
}


def model_of(card: Card, dtype: torch.dtype = torch.float32, settings: Settings | None = None) -> Transformer:
    """Build a model whose weights are far from those of a fresh one, where every path matters."""
    return filled(hollow(card, settings), spread=0.2, dtype=dtype)


def sentences(stack: Stack, seed: int, dtype: torch.dtype) -> list[Tensor]:
    return [random_inputs(stack, 1, length, seed + length, dtype)[0] for length in LENGTHS]


def padded(stack: Stack, rows: list[Tensor], tokens: int, left: bool, seed: int) -> tuple[Tensor, Tensor]:
    """Put sentences into one batch, with arbitrary content where there is none."""
    batch = random_inputs(stack, len(rows), tokens, seed, rows[0].dtype)
    mask = mask_of([len(row) for row in rows], tokens, left=left)
    for index, row in enumerate(rows):
        batch[index][mask[index]] = row
    return batch, mask


def run_batch(model: Transformer, sources: list[Tensor], targets: list[Tensor], padding: int, left: bool) -> Output:
    """Run all sentences at once; a source and its target differ in length, so the sources go in backwards."""
    first, *rest = model.card.stacks
    inputs, mask = padded(first, sources, LENGTHS[-1] + padding, left, seed=90 + padding)
    more: dict[str, Any] = {}
    if rest:
        more["targets"], more["targets_mask"] = padded(rest[0], targets, LENGTHS[-1] + 2 * padding, left, seed=95)
    output: Output = model(inputs, mask, **more)
    return output


@torch.no_grad()
def worst(card: Card, dtype: torch.dtype, tolerance: float, settings: Settings | None = None) -> list[str]:
    """List the paddings at which some sentence differs from itself alone."""
    model = model_of(card, dtype, settings)
    targets = sentences(card.stacks[-1], 5, dtype)
    sources = sentences(card.stacks[0], 0, dtype)[::-1] if card.family == "encoder-decoder" else targets
    pairs = list(zip(sources, targets, strict=True))
    both = card.family == "encoder-decoder"
    alone = [model(source[None], targets=target[None] if both else None) for source, target in pairs]
    faults = []
    for left in (False, True):
        for padding in PADDINGS:
            output = run_batch(model, sources, targets, padding, left)
            mask = mask_of(LENGTHS, output.hidden.shape[1], left=left)
            for index, length in enumerate(LENGTHS):
                if not close(output.hidden[index][mask[index]], alone[index].hidden[0], tolerance):
                    faults.append(f"{length} tokens, {padding} more, {'left' if left else 'right'}")
                if output.pooled is not None and not close(output.pooled[index], alone[index].pooled[0], tolerance):
                    faults.append(f"pooled {length} tokens, {padding} more, {'left' if left else 'right'}")
    return faults


@pytest.mark.parametrize("name", CARDS)
def test_a_sentence_gives_the_same_alone_and_in_any_batch(name: str) -> None:
    assert worst(CARDS[name], torch.float32, 1e-5) == []


@pytest.mark.parametrize(
    "name", ["encoder: sdp, pre", "decoder: wma, relative values, post", "translator: two layers, dft"]
)
def test_attention_step_by_step_gives_the_same_alone_and_in_any_batch(name: str) -> None:
    assert worst(CARDS[name], torch.float32, 1e-5, Settings(eager=True)) == []


def fuzz(seed: int, count: int) -> list[str]:
    """List random designs of which some sentence differs from itself alone; doubles, as some designs amplify noise."""
    rng = derive(seed, "batching")
    families = ("encoder", "decoder", "encoder-decoder", "frames")
    cards = [random_card(rng, families[index % 4], most_layers=3) for index in range(count)]
    return [str((card.to_json(), faults)) for card in cards if (faults := worst(card, torch.float64, 1e-6))]


def test_random_designs_give_the_same_alone_and_in_any_batch() -> None:
    assert fuzz(0, 24) == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.long) for seed in (2, 3, 4))])
def test_many_random_designs_give_the_same_alone_and_in_any_batch(seed: int) -> None:
    assert fuzz(seed, 100) == []


@pytest.mark.parametrize("name", ["flexibert-nano", "autobert-zero-nano"])
def test_an_empty_sentence_harms_nobody(name: str) -> None:
    space = load_space(name)
    ids = torch.randint(0, 1000, (3, 7), generator=torch.Generator().manual_seed(0))
    mask = torch.tensor([[1] * 7, [0] * 7, [1, 1, 1, 0, 0, 0, 0]])
    for seed in range(6):
        model: Any = build(space.card(space.sample(derive(seed, name)))).eval()
        whole = model(ids, mask).hidden
        whole.square().sum().backward()
        assert whole.isfinite().all()
        assert all(weight.grad is None or weight.grad.isfinite().all() for weight in model.parameters())
        torch.testing.assert_close(model(ids[:1]).hidden, whole[:1], rtol=1e-4, atol=1e-5)


TOKENS = 12
CAUSAL = {name: card for name, card in CARDS.items() if not name.startswith("encoder: ")}


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


@pytest.mark.parametrize("name", CAUSAL)
def test_the_future_leaves_the_past_as_it_was(name: str) -> None:
    assert looks_ahead(model_of(CARDS[name])) == []


@pytest.mark.parametrize(
    "name", ["decoder: sdp, pre", "decoder: wma, relative values, post", "decoder: sdp, relative, cell"]
)
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
