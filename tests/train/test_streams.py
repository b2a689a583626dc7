from dataclasses import fields, replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.supernet.lessons import CARD
from tests.train.cases import ENCODER, encoded
from torch.nn import functional as F

from formwright.arch.heads import HeadSpec
from formwright.core.errors import IllegalInput
from formwright.core.rng import derive
from formwright.nn.build import build
from formwright.tasks.encode import Encoded
from formwright.tasks.kind import KINDS
from formwright.tasks.rows import ImageRows, PlainText
from formwright.tasks.tokeniser import CLASS, MASK, PAD, SEPARATOR, Special, train_wordpiece
from formwright.train.prepare import encode_for
from formwright.train.streams import (
    IGNORED,
    Batch,
    Examples,
    Masked,
    Masking,
    Shuffled,
    ShuffledStream,
    Typical,
    in_order,
    masked,
    next_tokens,
    plain,
    translations,
)


def stream_of(kind: str, examples: Examples, size: int, seed: int = 0) -> ShuffledStream:
    return ShuffledStream(examples, Shuffled(examples.lengths, size, seed), KINDS.get(kind).batch)


lengths = st.lists(st.integers(1, 30), min_size=1, max_size=80).map(lambda values: np.array(values, np.int64))
sizes, seeds = st.integers(1, 20), st.integers(0, 5)
sequences = st.lists(st.lists(st.integers(5, 40), min_size=2, max_size=9), min_size=1, max_size=20)


@given(lengths, sizes, seeds, st.integers(0, 3))
def test_every_row_comes_once_an_epoch(lengths: NDArray[np.int64], size: int, seed: int, epoch: int) -> None:
    order = Shuffled(lengths, size, seed)
    first = epoch * order.batches_per_epoch
    dealt = [order.rows(step) for step in range(first, first + order.batches_per_epoch)]
    assert sorted(np.concatenate(dealt).tolist()) == list(range(len(lengths)))
    assert all(1 <= len(rows) <= size for rows in dealt)


@given(lengths, sizes, seeds, st.lists(st.integers(0, 50), max_size=6), st.integers(0, 50))
def test_a_step_has_its_batch_whatever_was_asked_before(lengths, size, seed, before, step) -> None:
    asked = Shuffled(lengths, size, seed)
    for other in before:
        asked.rows(other)
    assert np.array_equal(asked.rows(step), Shuffled(lengths, size, seed).rows(step))


@given(lengths, sizes, seeds)
def test_the_share_of_padding_is_what_the_batches_have(lengths: NDArray[np.int64], size: int, seed: int) -> None:
    order = Shuffled(lengths, size, seed)
    computed = sum(len(rows) * lengths[rows].max() for rows in map(order.rows, range(order.batches_per_epoch)))
    assert order.padding == pytest.approx(1 - lengths.sum() / computed)


@given(sequences, sizes, seeds, st.integers(0, 30))
def test_labels_and_masks_belong_to_their_rows(rows: list[list[int]], size: int, seed: int, step: int) -> None:
    examples = encoded(rows, labels=list(range(len(rows))))  # the label is the number of the row
    batch = stream_of("sequence-classification", examples, size, seed).batch(step)
    for place, row in enumerate(batch.labels.tolist()):
        real = slice(None) if batch.mask is None else batch.mask[place]
        assert batch.inputs[place][real].tolist() == rows[row]
    assert (batch.mask is None) == (len({len(rows[row]) for row in batch.labels.tolist()}) == 1)
    assert batch.mask is None or not batch.mask.all()


@given(sequences, st.data())
def test_next_tokens_are_those_behind_the_ones_read(rows: list[list[int]], data: st.DataObject) -> None:
    taken = np.array(data.draw(st.lists(st.integers(0, len(rows) - 1), min_size=1, max_size=6)))
    batch = next_tokens(encoded(rows), taken)
    assert batch.inputs.shape == batch.positions.shape
    wanted = iter(batch.labels.tolist())
    for place, row in enumerate(taken):
        read = batch.inputs[place][batch.positions[place]].tolist()
        assert read == rows[row][:-1]
        assert [next(wanted) for _ in read] == rows[row][1:]
    assert next(wanted, None) is None


def test_a_token_is_masked_from_the_causal_model_where_there_is_none() -> None:
    batch = next_tokens(encoded([[5, 6, 7, 8], [9, 10]]), np.array([0, 1]))
    assert batch.mask.tolist() == [[True, True, True], [True, True, False]]
    assert next_tokens(encoded([[5, 6], [9, 10]]), np.array([0, 1])).mask is None


def test_a_decoder_reads_the_target_shifted_and_padding_does_not_count() -> None:
    examples = encoded([[2, 7, 3], [2, 8, 9, 3]], targets=[[2, 11, 12, 14, 3], [2, 13, 3]])
    batch = translations(examples, np.array([1, 0]))
    assert batch.inputs.tolist() == [[2, 8, 9, 3], [2, 7, 3, 0]]
    assert batch.targets.tolist() == [[2, 13, 3, 0], [2, 11, 12, 14]]
    assert batch.targets_mask.tolist() == [[True, True, True, False], [True] * 4]
    assert batch.labels.tolist() == [[13, 3, IGNORED, IGNORED], [11, 12, 14, 3]]
    padded = translations(replace(examples, pad=4), np.array([1, 0]))
    assert (padded.inputs[1].tolist(), padded.targets[0].tolist()) == ([2, 7, 3, 4], [2, 13, 3, 4])


def test_images_come_with_their_labels() -> None:
    pixels = np.random.default_rng(0).random((12, 1, 8, 8), np.float32)
    rows = ImageRows(pixels, np.arange(12))
    batch = stream_of("image-classification", rows, 4, 0).batch(1)
    assert len(batch.labels) == 4
    assert torch.equal(batch.inputs, torch.from_numpy(pixels)[batch.labels])
    assert rows.lengths.tolist() == [1] * 12


def test_orders_differ_by_epoch_and_seed_and_lengths_come_together() -> None:
    order, other = Shuffled(np.full(64, 5), 8, 0), Shuffled(np.full(64, 5), 8, 1)
    epochs = [np.concatenate(plan).tolist() for plan in (order.plan(0), order.plan(1), other.plan(0))]
    assert epochs[0] != epochs[1]
    assert epochs[0] != epochs[2]
    lengths = np.random.default_rng(0).integers(4, 60, 2000)
    in_any_order = 1 - lengths.mean() / np.sort(lengths.reshape(-1, 16))[:, -1].mean()
    assert Shuffled(lengths, 16, 0).padding < in_any_order / 4
    with pytest.raises(IllegalInput, match="no rows to train on"):
        Shuffled(np.array([], np.int64), 4, 0)
    lengths = derive(0, "lengths").integers(3, 40, size=101)
    order = Shuffled(lengths, 8, seed=3)
    computed = sum(len(rows) * lengths[rows].max() for rows in order.plan(0))
    assert order.padded_length == pytest.approx(computed / 101)
    assert lengths.mean() < order.padded_length < lengths.max()


@given(sequences, sizes, st.data())
def test_all_rows_or_some_come_once_in_order_of_length(rows: list[list[int]], size: int, data: st.DataObject) -> None:
    examples: Encoded = encoded(rows)
    some = np.array(data.draw(st.lists(st.sampled_from(range(len(rows))), min_size=1, unique=True)), np.int64)
    for among, wanted in ((None, range(len(rows))), (some, some.tolist())):
        batches = list(in_order(examples, size, among))
        order = np.concatenate(batches)
        assert sorted(order.tolist()) == sorted(wanted)
        assert (np.diff(examples.tokens.lengths[order]) >= 0).all()
        assert max(map(len, batches)) <= size


def test_typical_batches_are_as_large_as_the_mean() -> None:
    rows = [[1] * length for length in range(2, 102) for _ in range(4)]
    stream = stream_of("causal-lm", encoded(rows), 4, seed=0)
    sizes = [stream.batch(step).inputs.numel() for step in range(100)]
    typical = [Typical(stream).batch(step).inputs.numel() for step in range(100)]
    assert sorted(typical) == sorted(sizes)
    away = [abs(size - np.mean(sizes)) for size in typical]
    assert away == sorted(away)
    assert max(away[:4]) < 0.05 * np.mean(sizes)


def test_a_batch_moves_whole_and_only_when_it_must() -> None:
    names = [field.name for field in fields(Batch)]
    batch = Batch(**{name: torch.ones(2, 3) for name in names})
    assert batch.to(torch.device("cpu")) is batch
    moved = batch.to(torch.device("meta"))
    assert {getattr(moved, name).device.type for name in names} == {"meta"}
    moved = Batch(torch.ones(1), torch.ones(1)).to(torch.device("meta"))
    assert moved.mask is None
    assert moved.follows is None


TEXT = PlainText(("a b c d", "a b", "c d a", "b c d a"))


def test_batches_of_text_without_labels() -> None:
    encoded = encode_for(CARD, TEXT, train_wordpiece(TEXT, 40), 12)
    found = plain(encoded, np.array([0, 1]))
    assert found.mask.sum(1).tolist() == [6, 4]  # with the tokens at both ends
    assert plain(encoded, np.array([0, 3])).mask is None
    assert not found.types.any()


# --- masked tokens ---------------------------------------------------------------------------------------------------


MASKING = Masking(MASK, (PAD, CLASS, SEPARATOR, MASK), 40)
framed = st.lists(
    st.lists(st.integers(5, 39), min_size=1, max_size=9).map(lambda words: [CLASS, *words, SEPARATOR]),
    min_size=1,
    max_size=12,
)


def test_shares_are_those_of_bert() -> None:
    tokens = np.full((400, 100), 7, np.int32)
    read, chosen = MASKING.hide(tokens, np.ones_like(tokens, bool), derive(0))
    number = chosen.sum()
    assert abs(number - 0.15 * tokens.size) < 5 * np.sqrt(0.15 * 0.85 * tokens.size)
    hidden, same = (read[chosen] == MASK).sum(), (read[chosen] == 7).sum()
    for found, share in ((hidden, 0.8 + 0.1 / 40), (same, 0.1 + 0.1 / 40), (number - hidden - same, 0.1 * 38 / 40)):
        assert abs(found - share * number) < 5 * np.sqrt(share * (1 - share) * number)
    assert (read[~chosen] == 7).all()
    assert read.max() == 39  # every token may stand in for another


@given(framed, st.integers(0, 1000))
def test_words_alone_are_chosen_and_are_the_labels(rows: list[list[int]], seed: int) -> None:
    batch = masked(encoded(rows), np.arange(len(rows)), MASKING, derive(seed))
    original = torch.full(batch.inputs.shape, PAD)
    for place, row in enumerate(rows):
        original[place, : len(row)] = torch.tensor(row)
    assert batch.positions.any()
    assert not set(original[batch.positions].tolist()) & set(MASKING.spared)
    assert original[batch.positions].tolist() == batch.labels.tolist()
    assert torch.equal(batch.inputs[~batch.positions], original[~batch.positions])
    assert batch.mask is None or torch.equal(batch.mask, original != PAD)


def test_a_step_hides_the_same_and_another_epoch_hides_others() -> None:
    examples = encoded([[CLASS, *range(5, 35), SEPARATOR] for _ in range(8)])

    def stream(seed: int = 0) -> Masked:
        return Masked(examples, Shuffled(examples.tokens.lengths, 8, seed), MASKING)

    one, again = stream().batch(3), stream().batch(3)
    assert torch.equal(one.inputs, again.inputs)
    assert torch.equal(one.labels, again.labels)
    for other in (stream().batch(4), stream(1).batch(3)):
        assert not torch.equal(one.positions, other.positions)


@torch.inference_mode()
def test_scores_of_hidden_tokens_alone_equal_those_of_all() -> None:
    model = build(ENCODER, head=HeadSpec("masked-lm"), seed=1).eval()
    rows = [[CLASS, *range(5, 5 + length), SEPARATOR] for length in (3, 17, 9, 25)]
    batch = masked(encoded(rows), np.arange(4), replace(MASKING, share=0.4), derive(0))
    some = model(batch.inputs, batch.mask, batch.types, positions=batch.positions)
    whole = model(batch.inputs, batch.mask, batch.types)
    targets = torch.full(batch.inputs.shape, -100)
    targets[batch.positions] = batch.labels
    expected = F.cross_entropy(whole.flatten(0, 1), targets.flatten(), ignore_index=-100)
    assert float(F.cross_entropy(some, batch.labels)) == pytest.approx(float(expected), abs=1e-6)


def test_the_special_tokens_are_those_of_the_tokeniser() -> None:
    tokeniser = train_wordpiece(PlainText(("some words",)), 50)
    assert Masking.of(tokeniser) == Masking(MASK, (PAD, CLASS, SEPARATOR, MASK), tokeniser.size)

    class Maskless:
        special = Special(0, 0)

    with pytest.raises(IllegalInput, match="no mask token"):
        Masking.of(Maskless())  # type: ignore[arg-type]


def test_shares_of_a_batch_hold_every_row_once() -> None:
    rows, tokens = 7, 4
    positions = torch.rand(rows, tokens, generator=torch.Generator().manual_seed(0)) < 0.5
    inputs = torch.arange(rows * tokens).view(rows, tokens)
    whole = Batch(inputs, inputs[positions], positions, None, positions=positions)
    for shares in (1, 2, 3):
        parts = [whole.share(place, shares) for place in range(shares)]
        assert sorted(torch.cat([part.inputs for part in parts])[:, 0].tolist()) == inputs[:, 0].tolist()
        for part in parts:
            assert torch.equal(part.labels, part.inputs[part.positions])  # labels stay with their tokens
            assert part.types is None
