"""Pictures become the pixels that transformers' own image processors make of them."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from formwright.arch.embeddings import PatchEmbedding
from formwright.core.errors import IllegalInput
from formwright.core.rng import derive
from formwright.tasks.pictures import PictureFiles, PictureReader
from formwright.tasks.text_files import file_digests

SIDE = 28
COLOURS = PatchEmbedding(SIDE, 4, 16)
VIT = {"feature_extractor_type": "ViTFeatureExtractor", "size": SIDE}
DEIT = {"image_processor_type": "DeiTImageProcessor", "size": {"height": 32, "width": 32}, "crop_size": SIDE}
CONFIGS: dict[str, dict[str, Any]] = {
    "vit": {"image_processor_type": "ViTImageProcessor", "size": {"height": SIDE, "width": SIDE}},
    "vit, an integer, as old extractors": VIT,
    "vit, other values": {**VIT, "image_mean": [0.4, 0.5, 0.6], "image_std": [0.1, 0.2, 0.3], "resample": 3},
    "vit, the last filter": {**VIT, "resample": 5},
    "vit, not normalised": {**VIT, "do_normalize": False},
    "vit, not rescaled": {**VIT, "do_rescale": False},
    "vit, not rescaled and not normalised": {**VIT, "do_rescale": False, "do_normalize": False},
    "vit, another factor": {**VIT, "rescale_factor": 1 / 127.5},
    "deit": {**DEIT, "crop_size": {"height": SIDE, "width": SIDE}},
    "deit, integers": {**DEIT, "size": 32, "feature_extractor_type": "DeiTFeatureExtractor"},
    "deit, no crop": {**DEIT, "size": SIDE, "do_center_crop": False},
    "deit, only a crop": {**DEIT, "do_resize": False},
    "clip": {"image_processor_type": "CLIPImageProcessor", "size": {"shortest_edge": 32}, "crop_size": SIDE},
    "clip, an integer": {"image_processor_type": "CLIPImageProcessor", "size": SIDE, "crop_size": SIDE},
}


def written(folder: Path, config: dict[str, Any]) -> Path:
    (folder / "preprocessor_config.json").write_text(json.dumps(config))
    return folder


def files(folder: Path, sizes: tuple[tuple[int, int], ...]) -> PictureFiles:
    paths = []
    for number, (width, height) in enumerate(sizes):
        pixels = derive(number, "picture").integers(256, size=(height, width, 3), dtype=np.uint8)
        paths.append(folder / f"{number}.png")
        Image.fromarray(pixels).save(paths[-1])
    return PictureFiles(tuple(paths), np.zeros(len(paths), np.int64), file_digests(paths))


def values(reader: PictureReader, rows: PictureFiles) -> Any:
    return reader.examples(rows).values(np.arange(len(rows)))


@pytest.mark.parametrize("name", CONFIGS)
def test_pixels_are_those_of_the_processor_of_transformers(name: str, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    config, rows = CONFIGS[name], files(tmp_path, ((28, 28), (60, 41), (35, 64), (17, 23)))
    family = (config.get("image_processor_type") or config["feature_extractor_type"])[:4].removesuffix("I")
    processor = getattr(transformers, f"{family.removesuffix('F')}ImageProcessorPil").from_dict(config)
    wanted = np.stack([processor(Image.open(path))["pixel_values"][0] for path in rows.files])
    reader = PictureReader.read(written(tmp_path, config), COLOURS)
    found = values(reader, rows)
    assert wanted.shape == found.shape == (4, 3, SIDE, SIDE)
    assert np.abs(found - wanted).max() <= 1e-5 * np.abs(wanted).max()


@pytest.mark.parametrize("name", ["size", "crop_size", "resample", "rescale_factor", "do_rescale", "image_mean"])
@pytest.mark.parametrize("family", ["ViT", "DeiT", "CLIP"])
def test_null_says_as_little_as_no_value(name: str, family: str, tmp_path: Path) -> None:
    config, design = {"image_processor_type": f"{family}ImageProcessor"}, PatchEmbedding(224, 16, 16)
    absent = PictureReader.read(written(tmp_path, config), design)
    assert PictureReader.read(written(tmp_path, {**config, name: None}), design) == absent


@pytest.mark.parametrize("name", CONFIGS)
def test_a_reader_of_another_processor_is_kept_in_the_delivered_folder(name: str, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    rows = files(tmp_path, ((60, 41), (17, 23)))
    reader = PictureReader.read(written(tmp_path, CONFIGS[name]), COLOURS)
    reader.save_pretrained(tmp_path)
    again = PictureReader.read(tmp_path, COLOURS)
    assert np.allclose(values(again, rows), values(reader, rows), rtol=0, atol=1e-6)
    processor = transformers.CLIPImageProcessorPil.from_pretrained(tmp_path)
    wanted = np.stack([processor(Image.open(path))["pixel_values"][0] for path in rows.files])
    assert np.abs(values(again, rows) - wanted).max() <= 1e-5 * np.abs(wanted).max()


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ({"image_processor_type": "ConvNextImageProcessor", "size": {"shortest_edge": SIDE}}, "ConvNextImageProcessor"),
        ({**VIT, "do_pad": True}, "do_pad"),
        ({**VIT, "crop_pct": 0.9}, "crop_pct"),
        ({**VIT, "rescale_offset": True}, "rescale_offset"),
        ({**VIT, "size": {"height": SIDE, "width": 32}}, "32"),
        ({**VIT, "size": {"longest_edge": SIDE}}, "longest_edge"),
        ({**VIT, "size": {"shortest_edge": SIDE}}, "shortest_edge"),
        ({**VIT, "size": 32}, "32"),
        ({**VIT, "do_resize": False}, "do_resize"),
        ({**VIT, "do_center_crop": True}, "crop_size"),
        ({**DEIT, "crop_size": 24}, "24"),
        ({**VIT, "image_mean": [0.5]}, "image_mean"),
        ({**VIT, "resample": 6}, "resample 6"),
        ({**VIT, "resample": -1}, "resample -1"),
        ({**VIT, "resample": "cubic"}, "resample cubic"),
    ],
)
def test_what_is_not_supported_is_refused_by_its_name_and_its_file(
    config: dict[str, Any], told: str, tmp_path: Path
) -> None:
    with pytest.raises(IllegalInput, match=rf"preprocessor_config\.json.*{told}"):
        PictureReader.read(written(tmp_path, config), COLOURS)


def test_grey_pictures_are_not_cropped_after_another_size(tmp_path: Path) -> None:
    config = {"size": 32, "crop_size": SIDE, "do_center_crop": True}
    with pytest.raises(IllegalInput, match="1 channel"):
        PictureReader.read(written(tmp_path, config), PatchEmbedding(SIDE, 4, 16, channels=1))
