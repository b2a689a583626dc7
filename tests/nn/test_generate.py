"""Texts that models generate, against slow searches through all texts there are."""

import math
from itertools import product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.nn.hf.helpers import VOCABULARY, enliven, lively, tokens
from torch import Tensor

from formwright.arch.card import Card
from formwright.arch.embeddings import TokenEmbedding
from formwright.arch.heads import HeadSpec
from formwright.arch.layers import Block, Stack
from formwright.arch.ops import Attention, CrossAttention, SeparableConvolution
from formwright.core.errors import IllegalInput
from formwright.core.rng import derive
from formwright.nn.build import build
from formwright.nn.generate import GenerationSettings, TokenReader, beam_search, generate
from formwright.nn.task_model import TaskModel
from formwright.space.zoo import load_space

BEGIN, END = 1, 2
WRITING = GenerationSettings(BEGIN, END, length=7)


def translator(seed: int, vocabulary: int, share: float = 0.3) -> TaskModel:
    table = TokenEmbedding(vocabulary, 8, positions="sinusoidal", norm=False)
    below = Block(8, Attention(2, 4), (8,), norm="pre")
    layers = (
        Block(8, Attention(2, 4), (8,), norm="pre", cross=CrossAttention(2, 4)),
        Block(8, SeparableConvolution(3), (8,), norm="pre"),
    )
    card = Card(encoder=Stack(table, (below,)), decoder=Stack(table, layers, causal=True), share_embedding=True)
    model = build(card, head=HeadSpec("seq2seq-lm"))
    enliven(model, seed)
    with torch.no_grad():
        model.token_table.mul_(share)  # several tokens may follow
    return model


def evolved(seed: int) -> TaskModel:
    space = load_space("evolved-transformer-nano")
    model = build(space.card(space.sample(derive(seed, "generate"))), head=HeadSpec("seq2seq-lm"))
    enliven(model, seed)
    return model


def named(name: str) -> TaskModel:
    return lively(name)


@torch.no_grad()
def probability(model: TaskModel, source: Tensor, text: tuple[int, ...]) -> float:
    """Give the log-probability of a whole text, without a cache."""
    follows = model(source, targets=torch.tensor([[BEGIN, *text[:-1]]])).log_softmax(-1)[0]
    return float(sum(follows[place, token] for place, token in enumerate(text)))


def best_of_all(
    model: TaskModel, source: Tensor, writing: GenerationSettings, vocabulary: int
) -> tuple[float, list[int]]:
    """Try every text that ends in time or is as long as may be."""
    found = []
    for length in range(1, writing.length + 1):
        for text in product(range(vocabulary), repeat=length):
            if END not in text[:-1] and (text[-1] == END or length == writing.length):
                score = probability(model, source, text) / ((5 + length) / 6) ** writing.penalty
                found.append((score, [token for token in text if token != END]))
    return max(found)


@pytest.mark.parametrize("penalty", [0.0, 0.6, 2.0])
def test_enough_beams_find_the_best_text_of_all(penalty: float) -> None:
    source, others = torch.tensor([[3, 0, 3, 2]]), 0
    for seed in range(3):
        model = translator(seed, 4, share=0.05)
        writing = GenerationSettings(BEGIN, END, length=3, beams=64, penalty=penalty)
        best = best_of_all(model, source, writing, 4)[1]
        assert generate(model, source, None, writing)[0] == best
        others += generate(model, source, None, GenerationSettings(BEGIN, END, length=3))[0] != best
    assert others


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 1000), st.floats(0, 2))
def test_one_beam_writes_the_best_next_token_each_time(seed: int, penalty: float) -> None:
    model, (source, mask) = translator(seed, VOCABULARY), tokens(seed)
    first = torch.full_like(source[:, :1], BEGIN)
    with torch.inference_mode():
        raced = beam_search(
            TokenReader(model, source, mask), first, GenerationSettings(BEGIN, END, length=6, penalty=penalty)
        )
    one = generate(model, source, mask, GenerationSettings(BEGIN, END, length=6))
    assert [[token for token in row if token not in (END, 0)] for row in raced.tolist()] == [
        [token for token in row if token != 0] for row in one
    ]


class Scripted(TokenReader):
    """Say of each token which ones follow it, and how likely."""

    def __init__(self, follows: dict[int, dict[int, float]]) -> None:
        self._follows = torch.full((5, 5), 1e-9)
        for token, shares in follows.items():
            self._follows[token, list(shares)] = torch.tensor(list(shares.values()))

    def read(self, new: Tensor) -> Tensor:
        return self._follows[new[:, -1]].log()

    def choose(self, rows: Tensor) -> None:
        pass


@pytest.mark.parametrize(
    ("penalty", "ending", "best"),
    [
        (0.0, 0.6, [END, 0, 0]),  # 0.6 against 0.4 * 0.9 * 0.9, however unlikely a token behind the end is
        (1.0, 0.5, [3, 4, END]),  # log 0.5 against log(0.5 * 0.9 * 0.9) / (8 / 6)
        (1.0, 0.55, [END, 0, 0]),
    ],
)
def test_a_text_that_has_ended_neither_grows_nor_gains(penalty: float, ending: float, best: list[int]) -> None:
    reader = Scripted({BEGIN: {END: ending, 3: 1 - ending}, 3: {4: 0.9, 3: 0.1}, 4: {END: 0.9, 3: 0.1}})
    found = beam_search(
        reader, torch.tensor([[BEGIN]]), GenerationSettings(BEGIN, END, length=3, beams=2, penalty=penalty)
    )
    assert found.tolist() == [best]


@pytest.mark.parametrize("beams", [1, 3])
@pytest.mark.parametrize("seed", range(3))
def test_a_cache_changes_no_text(seed: int, beams: int) -> None:
    source, mask = tokens(seed)
    writing = GenerationSettings(BEGIN, END, length=8, beams=beams)
    for model in (evolved(seed), named("translator"), translator(seed, VOCABULARY)):
        assert generate(model, source, mask, writing) == generate(model, source, mask, writing, cached=False)


@torch.inference_mode()
def test_a_cache_changes_no_score() -> None:
    source, mask = tokens(3)
    for model in (evolved(0), named("translator")):
        readers = [TokenReader(model, source, mask, cached=cached) for cached in (True, False)]
        for token in range(6):
            found, expected = (reader.read(torch.full_like(source[:, :1], token)) for reader in readers)
            assert (found - expected).abs().max() < 1e-5 * max(1.0, float(expected.abs().max()))
            assert expected.std() > 0.01


@torch.inference_mode()
def test_a_sentence_is_translated_alike_in_any_company() -> None:
    source, mask = tokens(5)
    for beams in (1, 3):
        writing = GenerationSettings(BEGIN, END, length=6, beams=beams)
        alone = [
            generate(named("translator"), source[[row]][:, mask[row].bool()], None, writing)[0] for row in range(3)
        ]
        assert generate(named("translator"), source, mask, writing) == alone


def test_a_decoder_goes_on_with_texts_padded_on_the_left() -> None:
    model, (ids, mask) = named("writer"), tokens(2)
    left, real = ids.flip(1), mask.flip(1)
    found = generate(model, left, real, WRITING)
    for row in range(len(ids)):
        text = left[row][real[row].bool()]
        for token in found[row]:
            with torch.no_grad():
                assert int(model(text[None])[0, -1].argmax()) == token
            text = torch.cat((text, torch.tensor([token])))
    assert any(found)
    assert found == generate(model, left, real, WRITING, cached=False)
    with pytest.raises(IllegalInput, match="padded on the left"):
        generate(model, ids, mask, WRITING)


def test_texts_end_in_time_and_where_they_say() -> None:
    model, (source, mask) = named("translator"), tokens(1)
    lengths = {
        length: generate(model, source, mask, GenerationSettings(BEGIN, END, length=length)) for length in (1, 3, 9)
    }
    for length, texts in lengths.items():
        assert all(len(text) <= length and END not in text for text in texts)
        assert [text[:1] for text in texts] == [text[:1] for text in lengths[1]]
    first = lengths[9][0][2]
    assert (
        generate(model, source, mask, GenerationSettings(BEGIN, first, length=9))[0]
        == lengths[9][0][:2][: lengths[9][0].index(first)]
    )


@pytest.mark.parametrize("options", [{"length": 0}, {"beams": 0}, {"penalty": -1.0}, {"penalty": math.nan}])
def test_what_cannot_be_written_with_is_refused(options: dict[str, float]) -> None:
    with pytest.raises(IllegalInput, match="not"):
        GenerationSettings(BEGIN, END, **options)  # type: ignore[arg-type]


def test_models_that_write_nothing_are_refused() -> None:
    with pytest.raises(IllegalInput, match="masked-lm writes no text"):
        generate(named("bert-masked"), *tokens(1), WRITING)
