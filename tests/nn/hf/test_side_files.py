"""Pictures reach a model as its task had them: values from 0 to 1, in its size and number of channels."""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from transformers import AutoImageProcessor

from formwright.arch.card import Card
from formwright.arch.layers import Block, PatchEmbedding, Stack
from formwright.arch.ops import Attention
from formwright.nn.build import build
from formwright.nn.hf.save import save_pretrained_folder
from formwright.nn.task_model import HeadSpec


def folder_of(path: Path, channels: int) -> Path:
    card = Card(encoder=Stack(PatchEmbedding(8, 4, 16, channels=channels), (Block(16, Attention(2, 8), (32,)),)))
    return save_pretrained_folder(build(card, head=HeadSpec("sequence-classification", 2)), path / "model")


@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize("side", [8, 20])
def test_pictures_become_pixels(channels: int, side: int, tmp_path: Path) -> None:
    processor = AutoImageProcessor.from_pretrained(folder_of(tmp_path, channels), trust_remote_code=True)
    levels = np.arange(side * side, dtype=np.uint8).reshape(side, side)
    grey = Image.fromarray(levels)
    for picture in (grey, grey.convert("RGB")):  # pipelines hand over every picture in colour
        pixels = np.asarray(processor(picture, return_tensors="np")["pixel_values"])
        assert pixels.shape == (1, channels, 8, 8)
        assert 0 <= pixels.min() <= pixels.max() <= 1
        if side == 8:
            assert np.allclose(pixels[0, 0], levels / 255, atol=1e-6)


def test_a_description_that_came_with_the_model_stays(tmp_path: Path) -> None:
    from formwright.nn.hf.side_files import PREPROCESSOR, write_preprocessor

    (tmp_path / PREPROCESSOR).write_text('{"image_processor_type": "ViTImageProcessor", "size": 5}')
    write_preprocessor(Card(encoder=Stack(PatchEmbedding(8, 4, 16), (Block(16, Attention(2, 8), (32,)),))), tmp_path)
    assert json.loads((tmp_path / PREPROCESSOR).read_text())["size"] == 5
