"""What turns rows into arrays is kept in a model's folder, and damaged files are refused."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.train.cases import FRAMES, LENGTH, VISION, WAVES, few

from formwright.arch.card import Card
from formwright.arch.embeddings import FrameEmbedding
from formwright.arch.layers import Block, Stack
from formwright.arch.ops import Attention
from formwright.core.errors import IllegalInput
from formwright.tasks.frames import FrameReader
from formwright.tasks.kind import KINDS
from formwright.tasks.pictures import PictureReader
from formwright.tasks.rows import Scale
from formwright.train.prepare import prepare

PICTURES = PictureReader(8, 1, Scale((0.25,), (0.5,)))
SERIES = FrameReader(8, 6, 3, Scale((1.0,), (2.0,)))


def read(folder: Path, card: Card) -> Any:
    kind = {"patches": "image-classification", "frames": "frame-classification"}[card.stacks[0].embedding.TYPE]
    return KINDS.get(kind).read_tokeniser(folder, card)


@pytest.mark.parametrize(
    ("reader", "card"), [(PICTURES, VISION), (SERIES, FRAMES), (replace(SERIES, rate=8000), FRAMES)]
)
def test_a_reader_is_read_back_as_it_was_written(reader: Any, card: Card, tmp_path: Path) -> None:
    reader.tokenizer.save_pretrained(tmp_path)
    assert read(tmp_path, card) == reader
    assert read(tmp_path, card).digest == reader.digest


def test_pictures_without_a_file_are_read_as_they_are_and_frames_are_refused(tmp_path: Path) -> None:
    assert read(tmp_path, VISION) == PictureReader(8, 1)
    with pytest.raises(IllegalInput, match=r"preprocessor_config\.json is not there"):
        read(tmp_path, FRAMES)


@pytest.mark.parametrize(
    "config", [{}, [], {"mean": 1, "std": [1]}, {**SERIES.config, "mean": ["x"]}, {**SERIES.config, "hop": "soon"}]
)
def test_a_damaged_file_is_named(config: Any, tmp_path: Path) -> None:
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(config))
    with pytest.raises(IllegalInput, match=r"preprocessor_config\.json"):
        read(tmp_path, FRAMES)


def test_rows_are_fitted_once_for_designs_of_every_width() -> None:
    wider = Card(encoder=Stack(FrameEmbedding(8, 32, length=LENGTH), (Block(32, Attention(2, 8), (32,)),)))
    first, second = (prepare(WAVES, card, 32) for card in (FRAMES, wider))
    assert first.tokeniser is second.tokeniser
    assert first is second


def test_a_design_that_cannot_read_the_rows_is_answered_with_spaces_that_can() -> None:
    with pytest.raises(IllegalInput, match=r"has frames, but this card reads images.*lighthubert-nano"):
        prepare(WAVES, VISION, 32)
    with pytest.raises(IllegalInput, match=r"has images, but this card reads frames.*: autoformer-nano$"):
        prepare(few("digits"), FRAMES, 32)


def test_rows_of_another_task_are_read_as_the_model_was_trained() -> None:
    assert prepare(few("digits"), VISION, 32, PICTURES).validation.examples.scale == PICTURES.scale
    found = prepare(WAVES, FRAMES, 32, SERIES).validation
    expected = SERIES.examples(found.rows, 32).frames
    assert (found.examples.frames == expected).all()
    own = prepare(WAVES, FRAMES, 32)
    assert own.tokeniser != SERIES
    assert not (own.validation.examples.frames == expected).all()
