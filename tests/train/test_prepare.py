from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.train.cases import (
    BLOCK,
    BOTH,
    DECODER,
    ENCODER,
    LENGTH,
    SPANS,
    TABLE,
    VISION,
    VOCABULARY,
    few,
    task_of,
    with_types,
)

from formwright.arch.card import Card
from formwright.arch.embeddings import FrameEmbedding, PatchEmbedding
from formwright.arch.layers import Stack
from formwright.core.errors import IllegalInput
from formwright.tasks.encode import Encoded
from formwright.tasks.pictures import PictureReader
from formwright.tasks.rows import ImageRows, PlainText, Splits, TextRows
from formwright.tasks.task import Task
from formwright.tasks.tokeniser import train_wordpiece
from formwright.train.prepare import PreparedRows, cut_rows, prepare, usual_length

READER = Card(encoder=Stack(replace(TABLE, length=48), (BLOCK,)))
READABLE = 48
PAIRS = TextRows(tuple((f"one {n}", f"two {n}") for n in range(8)), tuple(n % 2 for n in range(8)))


def images(channels: int = 1, side: int = 8) -> Task:
    rows = ImageRows(np.zeros((4, channels, side, side), np.float32), np.arange(4))
    return task_of("image-classification", "accuracy", rows, labels=4)


def arrays(part: PreparedRows) -> Encoded:
    return part.examples


def test_the_arrays_are_those_of_the_rows() -> None:
    task = few("mini-glue/rte", 64)
    prepared = prepare(task, ENCODER, LENGTH)
    for part, rows in (
        (prepared.train, task.search_view().train),
        (prepared.validation, task.search_view().validation),
    ):
        assert part.rows == rows
        assert arrays(part).labels.tolist() == list(rows.labels)  # type: ignore[union-attr]
        assert prepared.text_tokeniser.decode(arrays(part).tokens[0].tolist()) == " ".join(rows.texts[0]).lower()
    assert np.array_equal(arrays(prepared.part(rows)).tokens.values, arrays(prepared.validation).tokens.values)


@pytest.mark.parametrize("room", [20, 100, VOCABULARY])
def test_a_tokeniser_of_the_tasks_own_fits_the_card(room: int) -> None:
    card = Card(encoder=Stack(replace(TABLE, vocabulary=room), (BLOCK,)))
    assert prepare(few("mini-glue/sst2"), card, LENGTH).text_tokeniser.size <= room


@pytest.mark.parametrize(("types", "expected"), [(0, {0}), (1, {0}), (2, {0, 1}), (3, {0, 1})])
def test_no_more_sentences_are_told_apart_than_the_card_does(types: int, expected: set[int]) -> None:
    card = with_types(types)
    for task in (task_of("sequence-classification", "accuracy", PAIRS, labels=2), SPANS):
        prepared = prepare(task, card, LENGTH)
        for part in (prepared.train, prepared.validation, prepared.part(task.search_view().train)):
            assert set(arrays(part).types.values.tolist()) == expected


@settings(max_examples=25)
@given(st.integers(8, 100), st.integers(8, 64), st.sampled_from(["sequence-classification", "causal-lm"]))
def test_no_row_is_longer_than_asked_for_or_than_the_card_can_read(length: int, room: int, kind: str) -> None:
    table = replace(TABLE, length=room)
    task = few("mini-glue/rte", 64) if kind == "sequence-classification" else few("pydoc/causal", 16)
    card = (
        Card(encoder=Stack(table, (BLOCK,)))
        if kind != "causal-lm"
        else Card(decoder=Stack(table, (BLOCK,), causal=True))
    )
    prepared = prepare(task, card, length)
    assert prepared.length == min(length, room)
    for part in (prepared.train, prepared.validation):
        assert arrays(part).tokens.lengths.max() <= min(length, room)


def test_a_card_too_short_or_a_tokeniser_too_large_is_refused() -> None:
    words = PlainText(tuple(f"{chr(97 + n % 26)}{chr(97 + n // 26)} word" for n in range(600)))
    tokeniser = train_wordpiece(words, 1000)
    with pytest.raises(IllegalInput, match=f"tokeniser has {tokeniser.size} tokens, .* room for 320"):
        prepare(few("mini-glue/sst2"), ENCODER, LENGTH, tokeniser)
    tiny = Card(encoder=Stack(replace(TABLE, vocabulary=4), (BLOCK,)))  # less than the special tokens
    with pytest.raises(IllegalInput, match="room for 4"):
        prepare(few("mini-glue/sst2"), tiny, LENGTH)
    with pytest.raises(IllegalInput, match="at least 8 tokens"):
        prepare(few("mini-glue/sst2"), Card(encoder=Stack(replace(TABLE, length=4), (BLOCK,))), LENGTH)
    with pytest.raises(IllegalInput, match="at least 16 tokens"):
        prepare(SPANS, ENCODER, 15)


@pytest.mark.parametrize(("channels", "side"), [(3, 8), (1, 16)])
def test_images_the_card_cannot_read_are_refused(channels: int, side: int) -> None:
    expected = f"handmade.* {channels} channels and {side} pixels.* 1 and 8"
    with pytest.raises(IllegalInput, match=expected):
        prepare(images(channels, side), VISION, 0)
    card = Card(encoder=Stack(PatchEmbedding(side, 4, 16, channels=channels), (BLOCK,)))
    assert prepare(images(channels, side), card, 0).tokeniser == PictureReader(side, channels)


FRAMES = Card(encoder=Stack(FrameEmbedding(5, 16), (BLOCK,)))


@pytest.mark.parametrize(
    ("task", "card", "message"),
    [
        (SPANS, VISION, "the task colours has text, but this card reads images"),
        (SPANS, FRAMES, "the task colours has text, but this card reads frames"),
        (images(), ENCODER, "the task handmade has images, but this card reads text"),
        (images(), DECODER, "the task handmade has images, but this card reads text"),
        (images(), FRAMES, "the task handmade has images, but this card reads frames"),
    ],
)
def test_a_card_that_reads_something_else_is_refused(task: Task, card: Card, message: str) -> None:
    with pytest.raises(IllegalInput, match=message):
        prepare(task, card, LENGTH)


def test_what_was_prepared_is_used_again_for_cards_that_read_alike() -> None:
    task = few("mini-glue/sst2")
    wider = Card(encoder=Stack(TABLE, (replace(BLOCK, feed_forward=(64,)),)))
    first = prepare(task, ENCODER, LENGTH)
    assert prepare(task, wider, LENGTH) is first
    assert prepare(task, ENCODER, LENGTH, train_wordpiece(task.search_view().train, 320)) is first
    assert prepare(task, ENCODER, LENGTH - 1) is not first
    assert prepare(task, with_types(1), LENGTH) is not first


def _of_words(lengths: list[int]) -> Task:
    rows = TextRows(tuple((" ".join(["word"] * number),) for number in lengths), (0, 1) * (len(lengths) // 2))
    return Task("mine", "sequence-classification", "accuracy", lambda: Splits(rows, rows, None), labels=("a", "b"))


@pytest.mark.parametrize(
    ("lengths", "most", "wanted"),
    [([10] * 8, 128, 16), ([10] * 8, 12, 12), ([28] * 8, 128, 32), ([28] * 8, 24, 24), ([200] * 8, 128, READABLE)],
)
def test_the_usual_length_is_bounded_by_time_and_by_the_model(lengths: list[int], most: int, wanted: int) -> None:
    assert usual_length(_of_words(lengths), READER, most) == wanted


def test_the_smaller_table_decides_and_cut_rows_are_counted() -> None:
    small = replace(BOTH, decoder=replace(BOTH.decoder, embedding=replace(TABLE, vocabulary=90, length=12)))
    prepared = prepare(few("translation"), small, LENGTH)
    assert prepared.text_tokeniser.size <= 90
    assert prepared.length == 12
    assert arrays(prepared.train).targets.lengths.max() <= 12  # type: ignore[union-attr]
    cut = cut_rows(prepare(_of_words([10] * 18 + [60] * 82), READER, 32), READER)
    assert (cut.length, cut.rows, cut.cut, cut.longest, cut.readable) == (32, 100, 82, 62, READABLE)
