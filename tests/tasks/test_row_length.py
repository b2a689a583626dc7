"""The default length, and the share of rows that a length cuts."""

from dataclasses import replace

import numpy as np
import pytest

from formwright.arch.embeddings import FrameEmbedding
from formwright.core.rng import derive
from formwright.tasks.encode import encode_rows
from formwright.tasks.frame_kinds import FRAME_CLASSIFICATION
from formwright.tasks.frame_options import FrameOptions, frame_options
from formwright.tasks.frames import FrameReader, FrameRows
from formwright.tasks.image_kinds import IMAGE_CLASSIFICATION
from formwright.tasks.row_length import Cut, covering, cut_by, cut_by_default, rounded, uncut_sizes
from formwright.tasks.rows import ImageRows, PlainText, SpanRows, Splits, TextRows, TranslationRows
from formwright.tasks.span_windows import encode_spans
from formwright.tasks.task import Task
from formwright.tasks.text_kinds import SEQ2SEQ_LM, SEQUENCE_CLASSIFICATION
from formwright.tasks.tokeniser import train_wordpiece

WORDS = "alpha beta gamma delta"
TOKENISER = train_wordpiece(PlainText((WORDS,)), 100)  # every word is one token


def words(number: int) -> str:
    return " ".join((WORDS.split() * number)[:number])


@pytest.mark.parametrize(
    ("sizes", "wanted"),
    [
        ([5] * 100, 16),
        ([40] * 100, 40),
        ([41] * 100, 48),
        ([20] * 95 + [500] * 5, 24),  # 95 % are covered
        ([20] * 94 + [90] + [500] * 5, 96),
        ([300], 304),
    ],
)
def test_the_length_covers_95_percent_in_steps_of_8(sizes: list[int], wanted: int) -> None:
    assert covering(np.array(sizes)) == wanted


def test_sizes_are_those_of_whole_rows() -> None:
    rows = TextRows(((words(7),), (words(7), words(20))), (0, 1))
    assert uncut_sizes(SEQUENCE_CLASSIFICATION, rows, TOKENISER).tolist() == [9, 30]
    encoded = encode_rows(rows, TOKENISER, 12)
    assert (encoded.uncut.tolist(), encoded.tokens.lengths.tolist()) == ([9, 30], [9, 12])
    pairs = TranslationRows((words(3), words(9)), (words(5), words(2)))
    assert uncut_sizes(SEQ2SEQ_LM, pairs, TOKENISER).tolist() == [7, 11]
    assert encode_rows(PlainText((words(50),)), TOKENISER, 16).uncut is None
    rows = SpanRows((words(4), words(4)), (words(50), words(6)), ((), ()))
    windows = encode_spans(rows, TOKENISER, 20)
    assert len(windows) > 2
    assert windows.uncut.tolist() == [57, 13]
    many = TextRows(((words(4),),) * 25_000, (0,) * 25_000)
    assert len(uncut_sizes(SEQUENCE_CLASSIFICATION, many, TOKENISER)) <= 10_000


def test_a_task_alone_tells_what_the_default_cuts() -> None:
    rows = TextRows(tuple((words(4 if row < 90 else 200),) for row in range(100)), (0, 1) * 50)
    task = Task("mine", "sequence-classification", "accuracy", lambda: Splits(rows, rows, None))
    sizes, cut = cut_by_default(task, 100)
    assert (len(sizes), cut.length, cut.share, cut.longest) == (100, 128, 0.1, 202)
    assert rounded(202) == 208
    assert "--length 208" in cut.sentence


def test_cut_rows_are_described() -> None:
    cut = Cut(64, 200, 164, 90, 128)
    assert cut.share == 0.82
    assert cut.is_many
    assert "82.0%" in cut.sentence
    assert "--length 96" in cut.sentence
    assert not Cut(64, 200, 10, 90, 128).is_many
    unreadable = Cut(128, 200, 164, 900, 128).sentence
    assert "128" in unreadable
    assert "--length" not in unreadable
    said = Cut(24, rows=10_000, cut=3, longest=30, readable=128).sentence
    assert "3 of 10,000" in said
    assert "0.0%" not in said


def recordings(seconds: list[float], rate: int = 4000, options: FrameOptions | None = None) -> FrameRows:
    found = [derive(row, "noise").normal(size=(round(rate * one), 1)) for row, one in enumerate(seconds)]
    return FrameRows.of(found, [0] * len(found), rate=rate, options=options)


@pytest.mark.parametrize("rate", [4000, 3997])
@pytest.mark.parametrize("options", [None, FrameOptions(50, 20, 6)])
def test_frames_that_cover_long_recordings_are_named(rate: int, options: FrameOptions | None) -> None:
    rows = recordings([1.0] * 2 + [4.0] * 37 + [30.0], rate, options)
    kind, embedding = FRAME_CLASSIFICATION, FrameEmbedding(8, 16, length=64)
    reader = FrameReader.fit(rows, embedding)
    cut = cut_by(kind, kind.examples(rows, reader, 64), 64, 64)
    assert (cut.cut, cut.unit) == (40 if options is None else 38, "frames")
    assert f"{cut.fewer} covers 95%" in cut.sentence
    option, _, given = cut.fewer.partition(" ")
    assert option == "--frames"
    named = frame_options({name: int(value) for name, _, value in (one.partition("=") for one in given.split(","))})
    assert named.window_ms >= 2 * named.hop_ms
    assert named.bands == (None if options is None else 6)
    other = replace(rows, options=named)
    after = cut_by(kind, kind.examples(other, FrameReader.fit(other, embedding), 64), 64, 64)
    assert (after.cut, after.fewer) == (1, "")
    assert (reader.hop + 1) / rate * 1000 < named.hop_ms < 2 * 4000 / 64  # no coarser than needed


def test_no_frames_are_named_where_rows_fit_or_none_could_be_read() -> None:
    kind, embedding = FRAME_CLASSIFICATION, FrameEmbedding(8, 16, length=64)

    def cut(rows: FrameRows, length: int, readable: int) -> Cut:
        return cut_by(kind, kind.examples(rows, FrameReader.fit(rows, embedding), length), length, readable)

    rows = recordings([1.0] * 10)
    assert "--length 104" in cut(rows, 64, 200).sentence
    assert cut(rows, 64, 200).fewer == ""
    assert cut(rows, 32, 64).fewer == cut(rows, 64, 64).fewer == "--frames window_ms=32,hop_ms=16"
    assert cut(rows, 1, 1).fewer == "--frames window_ms=1000,hop_ms=980"
    assert cut(recordings([3.0] * 10), 1, 1).fewer == ""  # a frame is a second at most
    assert cut(replace(rows, rate=0), 64, 64).fewer == ""  # series


def test_images_are_never_cut() -> None:
    assert cut_by(IMAGE_CLASSIFICATION, ImageRows(np.zeros((3, 1, 8, 8)), np.zeros(3)), 1, 0) is None
