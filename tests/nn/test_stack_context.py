"""Reading token by token with a cache is reading everything at once."""

import pytest
import torch
from tests.arch.random_cards import random_card
from tests.nn.cases import decoders, layers_of, stack, translators
from tests.nn.helpers import close, mask_of, normal, random_inputs
from tests.nn.test_batching import model_of
from torch import Tensor

from formwright.arch.card import Card
from formwright.core.rng import derive
from formwright.nn.settings import Settings
from formwright.nn.stack_context import Cache, StackContext
from formwright.nn.transformer import Transformer
from formwright.space.zoo import load_space

CPU = torch.device("cpu")


def test_what_a_mask_and_causality_hide() -> None:
    assert StackContext().visible(4, CPU) is None
    visible = StackContext(mask_of([2, 3], 3)).visible(3, CPU)
    assert visible.expand(2, 1, 3, 3)[0, 0].tolist() == [[True, True, False]] * 3
    assert visible.all(-1).flatten().tolist() == [False, True]
    visible = StackContext(causal=True).visible(3, CPU)
    assert visible[0, 0].tolist() == [[True, False, False], [True, True, False], [True, True, True]]


@pytest.mark.parametrize("left", [False, True])
def test_a_causal_mask_hides_the_future_and_padding(left: bool) -> None:
    mask = mask_of([2, 4], 4, left=left)
    visible = StackContext(mask, causal=True).visible(4, CPU)
    for sentence in range(2):
        for query in range(4):
            for key in range(4):
                if mask[sentence, query]:
                    assert visible[sentence, 0, query, key] == (key <= query and bool(mask[sentence, key]))


@pytest.mark.parametrize("left", [False, True])
def test_every_query_sees_something_so_that_padding_stays_finite(left: bool) -> None:
    visible = StackContext(mask_of([1, 3], 5, left=left), causal=True).visible(5, CPU)
    assert visible.any(-1).all()


@pytest.mark.parametrize("left", [False, True])
def test_positions_and_lengths_count_real_tokens_only(left: bool) -> None:
    mask = mask_of([2, 4, 1], 4, left=left)
    context, x = StackContext(mask), normal(3, 4, 8)
    assert context.lengths(x).tolist() == [[2], [4], [1]]
    for sentence, length in enumerate([2, 4, 1]):
        assert context.positions(x)[sentence][mask[sentence]].tolist() == list(range(length))
    assert (context.positions(x).min(), context.positions(x).max()) == (0, 3)


def test_padding_is_zeroed_and_not_counted() -> None:
    x = normal(2, 3, 4)
    result = StackContext(mask_of([1, 3], 3)).real(x)
    assert torch.equal(result[0, 0], x[0, 0])
    assert torch.equal(result[1], x[1])
    assert not result[0, 1:].any()
    assert StackContext().real(x) is x
    x = normal(2, 5, 8)
    assert StackContext().lengths(x).tolist() == [[5]]
    assert StackContext().positions(x).tolist() == [[0, 1, 2, 3, 4]]


def test_once_computes_for_the_first_caller_only() -> None:
    context, calls = StackContext(), []

    def compute() -> torch.Tensor:
        calls.append(1)
        return torch.zeros(1)

    assert context.once("a", compute) is context.once("a", compute)
    assert context.once("b", compute) is not context.once("a", compute)
    assert len(calls) == 2


TOKENS = 9
CARDS = {**decoders(), **{f"translator: {name}": card for name, card in translators().items()}}
del CARDS["causal encoder"]


def pieces(model: Transformer, mask: Tensor | None, steps: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """Read a text at once and in pieces; return both results."""
    ids = random_inputs(model.card.stacks[-1], 2, TOKENS, seed=1)
    memory: tuple[Tensor, ...] = ()
    memory_mask = mask_of([8, 5], 8)
    if model.encoder is not None:
        dtype = next(model.parameters()).dtype
        memory = model.encode(random_inputs(model.card.stacks[0], 2, 8, seed=4, dtype=dtype), memory_mask)
    whole = model.decode(ids, mask, memory, memory_mask)[-1]
    cache, found, read = Cache(), [], 0
    for step in steps:
        seen = None if mask is None else mask[:, : read + step]
        found.append(model.decode(ids[:, read : read + step], seen, memory, memory_mask, cache=cache)[-1])
        read += step
    assert cache.length == TOKENS
    return whole, torch.cat(found, 1)


@torch.no_grad()
def differs(model: Transformer) -> list[str]:
    """List the ways of reading that give another result than reading at once."""
    faults = []
    padded = mask_of([TOKENS, 6], TOKENS, left=True)
    for mask, steps in ((None, (1,) * TOKENS), (None, (2, 1, 5, 1)), (padded, (4, 1, 3, 1))):
        whole, found = pieces(model, mask, steps)
        real = slice(None) if mask is None else mask
        if not close(found[real], whole[real], 1e-9):
            faults.append(f"{steps}")
    return faults


@pytest.mark.parametrize("name", CARDS)
def test_reading_on_is_reading_at_once(name: str) -> None:
    assert differs(model_of(CARDS[name], torch.float64)) == []


@pytest.mark.parametrize("name", ["sdp, pre", "wma, relative values, post", "translator: two layers, cell"])
def test_attention_step_by_step_reads_on_too(name: str) -> None:
    assert differs(model_of(CARDS[name], torch.float64, settings=Settings(eager=True))) == []


@pytest.mark.parametrize("kernel", [2, 12])
def test_convolutions_of_every_size_read_on(kernel: int) -> None:
    for layer in layers_of(kernel):
        assert differs(model_of(Card(decoder=stack((layer,), causal=True)), torch.float64)) == [], layer


@pytest.mark.slow
def test_random_decoders_and_evolved_cells_read_on() -> None:
    rng, space = derive(0, "cache"), load_space("evolved-transformer-nano")
    cards = [random_card(rng, ("decoder", "encoder-decoder")[index % 2], most_layers=3) for index in range(8)]
    cards += [space.card(space.sample(rng)) for _ in range(4)]
    for card in cards:
        assert differs(model_of(card, torch.float64)) == [], card.to_json()


@torch.no_grad()
def test_chosen_rows_go_on_as_if_they_had_stood_there() -> None:
    model = model_of(CARDS["translator: two layers, cell"], torch.float64)
    ids, source = (random_inputs(model.card.stacks[-1], 3, 6, seed=seed) for seed in (1, 2))
    rows, memory, cache = torch.tensor([2, 0, 0, 1]), model.encode(source), Cache()
    model.decode(ids[:, :4], None, memory, cache=cache)
    cache.choose(rows)
    found = model.decode(ids[rows, 4:], None, tuple(layer[rows] for layer in memory), cache=cache)[-1]
    expected = model.decode(ids, None, memory)[-1][rows, 4:]
    assert close(found, expected)
    assert not close(found, expected.flip(0), 1e-3)


def test_only_as_much_is_kept_as_is_wanted() -> None:
    cache = Cache()
    assert cache.extended(0, torch.ones(1, 3, 2), 1, most=2).shape == (1, 3, 2)
    assert cache.extended(0, torch.zeros(1, 1, 2), 1, most=2)[0, :, 0].tolist() == [1.0, 1.0, 0.0]
    assert cache.extended(0, torch.zeros(1, 1, 2), 1, most=0)[0, :, 0].tolist() == [1.0, 0.0, 0.0]
    assert cache.extended(0, torch.ones(1, 1, 2), 1, most=0).shape == (1, 1, 2)
