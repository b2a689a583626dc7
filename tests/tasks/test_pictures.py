"""Folders of pictures, and how pictures become pixels."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from formwright.arch.embeddings import PatchEmbedding
from formwright.core.errors import IllegalInput
from formwright.core.rng import derive
from formwright.tasks import load_task
from formwright.tasks.image_kinds import shrunk
from formwright.tasks.pictures import PictureFiles, PictureReader, pixel_scale
from formwright.tasks.rows import ImageRows, Scale
from formwright.tasks.task import _made, contents, shortened


def picture(seed: int, width: int, height: int, mode: str = "RGB") -> Any:
    pixels = derive(seed, "picture").integers(256, size=(height, width, 3), dtype=np.uint8)
    return Image.fromarray(pixels).convert(mode)


def write_folder(folder: Path, rows: int = 20, inner: str = "") -> Path:
    for row in range(rows):
        path = folder / inner / ("cat", "dog")[row % 2] / f"{row:03}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        picture(row, 8 + row % 3, 8).save(path)
    return folder


def test_rare_equal_and_contradictory_pictures_are_noted(tmp_path: Path) -> None:
    write_folder(tmp_path, 20, "train")
    write_folder(tmp_path, 2, "test")  # the first two of train
    picture(99, 8, 8).save(tmp_path / "train" / "dog" / "once.png")
    (tmp_path / "train" / "cat" / "twice.png").write_bytes((tmp_path / "train" / "dog" / "once.png").read_bytes())
    (tmp_path / "train" / "rare").mkdir()
    picture(77, 8, 8).save(tmp_path / "train" / "rare" / "only.png")
    found = {warning.kind: warning.count for warning in load_task(str(tmp_path)).warnings}
    assert found == {"shared-rows": 2, "contradictory-labels": 2, "rare-classes": 1}


def test_pictures_that_lose_much_of_their_size_or_their_colours_are_noted(tmp_path: Path) -> None:
    for row in range(10):
        path = tmp_path / ("cat", "dog")[row % 2] / f"{row}.png"
        path.parent.mkdir(exist_ok=True)
        picture(row, 60 + row, 40).save(path)
    rows = load_task(str(tmp_path)).search_view().train
    assert "40 pixels" in shrunk(rows, PatchEmbedding(8, 4, 16))
    assert "colours" in shrunk(rows, PatchEmbedding(32, 4, 16, channels=1))
    assert shrunk(rows, PatchEmbedding(32, 4, 16)) == ""


def test_what_holds_no_labelled_files_is_refused_with_the_layouts(tmp_path: Path) -> None:
    picture(0, 8, 8).save(tmp_path / "flat.png")
    with pytest.raises(IllegalInput, match=r"train\.csv.*folder for each label"):
        load_task(str(tmp_path))


def test_a_folder_of_pictures_is_a_task(tmp_path: Path) -> None:
    task = load_task(str(write_folder(tmp_path)))
    view = task.search_view()
    assert (task.kind, task.labels, len(view.train), len(view.validation)) == (
        "image-classification",
        ("cat", "dog"),
        16,
        2,
    )
    for file, label in zip(view.train.files, view.train.labels, strict=True):
        assert file.parent.name == task.labels[label]
    assert {path.name for path in view.train.files}.isdisjoint(path.name for path in view.validation.files)


def test_folders_of_splits_are_kept_and_the_test_is_sealed(tmp_path: Path) -> None:
    write_folder(tmp_path, 20, "train")
    write_folder(tmp_path, 4, "test")
    task = load_task(str(tmp_path))
    assert "90/10" in task.division
    assert {path.parent.parent.name for path in task.search_view().validation.files} == {"train"}
    assert len(_made(task).test) == 4


def test_digests_are_those_of_the_files_and_not_of_their_names(tmp_path: Path) -> None:
    first, second = (write_folder(tmp_path / name) for name in ("first", "second"))
    assert contents(load_task(str(first))) == contents(load_task(str(second)))
    picture(99, 8, 8).save(second / "cat" / "000.png")
    assert contents(load_task(str(first))) != contents(load_task(str(second)))


def test_the_same_pictures_with_other_labels_are_other_rows() -> None:
    first, second = (PictureFiles((Path("x.png"),) * 2, np.array(labels), ("a", "b")) for labels in ((0, 1), (1, 0)))
    assert first.digest != second.digest
    assert first.take([0, 1]).digest == first.digest
    assert first.take([1]).digest != first.take([0]).digest


def test_equal_pictures_stay_in_one_split(tmp_path: Path) -> None:
    for row in range(40):
        path = tmp_path / ("cat", "dog")[row % 2] / f"{row:03}.png"
        path.parent.mkdir(exist_ok=True)
        picture(row // 4, 8, 8).save(path)
    splits = _made(load_task(str(tmp_path)))
    digests = [set(rows.digests) for rows in (splits.train, splits.validation, splits.test)]
    assert sum(map(len, digests)) == 10


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize(("width", "height"), [(8, 8), (20, 8), (9, 31), (6, 7), (5, 5)])
def test_the_middle_of_a_picture_is_read(tmp_path: Path, width: int, height: int, channels: int) -> None:
    image = picture(0, width, height)
    image.save(tmp_path / "x.png")
    found = PictureReader(8, channels).pixels(tmp_path / "x.png")
    assert found.shape == (channels, 8, 8)
    grey = image.convert("L" if channels == 1 else "RGB")
    short = min(width, height)
    wide, high = int(8 * width / short), int(8 * height / short)
    whole = np.asarray(grey.resize((wide, high), Image.Resampling.BILINEAR)).reshape(high, wide, channels)
    left, top = (wide - 8) // 2, (high - 8) // 2
    assert (np.moveaxis(found, 0, -1) == whole[top : top + 8, left : left + 8]).all()


def test_squeezed_pictures_are_whole(tmp_path: Path) -> None:
    image = picture(0, 20, 8)
    image.save(tmp_path / "x.png")
    found = PictureReader(8, 3, squeeze=True).pixels(tmp_path / "x.png")
    assert (np.moveaxis(found, 0, -1) == np.asarray(image.resize((8, 8), Image.Resampling.BILINEAR))).all()


def test_a_picture_that_a_camera_turned_is_read_upright(tmp_path: Path) -> None:
    upright, notes = picture(0, 8, 8), Image.Exif()
    notes[0x0112] = 6  # the orientation: to be turned by 90 degrees, clockwise
    upright.rotate(90).save(tmp_path / "turned.png", exif=notes)
    assert (PictureReader(8, 3).pixels(tmp_path / "turned.png") == np.moveaxis(np.asarray(upright), -1, 0)).all()


@pytest.mark.parametrize("filter_", [Image.Resampling.NEAREST, Image.Resampling.BICUBIC])
def test_pictures_are_resized_by_the_filter_of_the_model(tmp_path: Path, filter_: Image.Resampling) -> None:
    picture(0, 20, 20).save(tmp_path / "x.png")
    reader = PictureReader.of_config({"size": {"shortest_edge": 8}, "resample": int(filter_)}, PatchEmbedding(8, 4, 16))
    expected = np.moveaxis(np.asarray(picture(0, 20, 20).resize((8, 8), filter_)), -1, 0)
    assert (reader.pixels(tmp_path / "x.png") == expected).all()


def test_a_reader_is_fitted_to_training_pictures_and_to_what_the_design_reads(tmp_path: Path) -> None:
    rows = load_task(str(write_folder(tmp_path))).search_view().train
    reader = PictureReader.fit(rows, PatchEmbedding(4, 2, 8, channels=1))
    examples = reader.examples(rows)
    values = examples.values(np.arange(len(rows)))
    assert values.shape == (16, 1, 4, 4)
    assert abs(values.mean()) < 1e-2
    assert abs(values.std() - 1) < 1e-2
    assert reader.examples(rows).pixels is examples.pixels  # read once
    assert PictureReader.of_config(reader.config, PatchEmbedding(4, 2, 8, channels=1)) == reader


def test_pictures_are_read_anew_for_a_design_that_reads_them_otherwise(tmp_path: Path) -> None:
    rows = load_task(str(write_folder(tmp_path))).search_view().train
    for reader in (PictureReader(8, 1), PictureReader(8, 3), PictureReader(8, 3, squeeze=True), PictureReader(4, 3)):
        found = reader.examples(rows)
        assert (found.pixels[1] == reader.pixels(rows.files[1])).all()


def test_the_scale_is_that_of_each_channel() -> None:
    pixels = np.zeros((2, 2, 2, 2), np.uint8)
    pixels[:, 1, 0] = 255
    assert pixel_scale(pixels) == Scale((0.0, 0.5), (1.0, 0.5))


def test_numbers_are_read_as_they_are() -> None:
    rows = ImageRows(np.zeros((4, 1, 8, 8), np.float32), np.arange(4))
    reader = PictureReader.fit(rows, PatchEmbedding(8, 2, 8, channels=1))
    assert (reader.scale, reader.digest) == (None, None)


@pytest.mark.parametrize(
    "config",
    [
        {"size": {"height": 8, "width": 8}},
        {"size": {"shortest_edge": 10}, "do_center_crop": True, "crop_size": 8},
        {"do_resize": False, "do_center_crop": True, "crop_size": 8},
        {"resample": 3},
    ],
)
def test_another_way_to_read_pictures_has_another_digest(config: dict[str, Any]) -> None:
    reader = PictureReader.of_config(config, PatchEmbedding(8, 4, 16))
    assert reader.scale is None
    assert reader.digest is not None
    assert PictureReader.of_config({}, PatchEmbedding(8, 4, 16)).digest is None


def test_a_damaged_picture_is_named(tmp_path: Path) -> None:
    (tmp_path / "x.png").write_bytes(b"no picture")
    with pytest.raises(IllegalInput, match=r"x\.png"):
        PictureReader(8, 3).pixels(tmp_path / "x.png")


def test_the_first_rows_of_a_folder_are_a_task(tmp_path: Path) -> None:
    task = shortened(load_task(str(write_folder(tmp_path))), 5)
    assert isinstance(task.search_view().train, PictureFiles)
    assert len(task.search_view().train) == 5
