"""Pictures in IDX files."""

import gzip
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from formwright.arch.embeddings import PatchEmbedding
from formwright.core.errors import IllegalInput
from formwright.core.rng import derive
from formwright.tasks import load_task
from formwright.tasks.idx import read_idx
from formwright.tasks.pictures import PictureReader, read_picture_files, unlabelled_pictures
from formwright.tasks.rows import ImageRows
from formwright.tasks.task import _made, contents


def write_idx(path: Path, values: NDArray[np.uint8]) -> None:
    header = bytes([0, 0, 8, values.ndim]) + np.array(values.shape, ">i4").tobytes()
    content = header + values.tobytes()
    path.write_bytes(gzip.compress(content) if path.suffix.lower() == ".gz" else content)


def write_pictures(folder: Path, split: str, rows: int, end: str = "") -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    rng = derive(0, split)
    pixels, labels = rng.integers(256, size=(rows, 4, 4), dtype=np.uint8), np.arange(rows, dtype=np.uint8) % 3
    write_idx(folder / f"{split}-images-idx3-ubyte{end}", pixels)
    write_idx(folder / f"{split}-labels-idx1-ubyte{end}", labels)
    return pixels, labels


@pytest.mark.parametrize(("end", "name"), [("", "t10k"), (".gz", "test"), (".GZ", "test")])
def test_a_folder_of_idx_files_is_a_task(tmp_path: Path, end: str, name: str) -> None:
    pixels, labels = write_pictures(tmp_path, "train", 60, end)
    test_pixels, _ = write_pictures(tmp_path, name, 12, end)
    task = load_task(str(tmp_path))
    view = task.search_view()
    assert (task.kind, task.labels, len(view.train), len(view.validation)) == (
        "image-classification",
        ("0", "1", "2"),
        54,
        6,
    )
    assert np.bincount(view.validation.labels).tolist() == [2, 2, 2]
    for rows in (view.train, view.validation):
        places = np.array(rows.numbers)
        assert (rows.pixels[:, 0] == pixels[places]).all()
        assert (rows.labels == labels[places]).all()
    assert not set(view.train.numbers) & set(view.validation.numbers)
    test = _made(task).test
    assert (test.pixels[:, 0] == test_pixels).all()


def test_without_test_files_the_rows_are_divided_in_three_and_equal_pictures_stay_together(tmp_path: Path) -> None:
    pixels = derive(0, "pictures").integers(256, size=(50, 4, 4), dtype=np.uint8)
    write_idx(tmp_path / "train-images-idx3-ubyte", np.concatenate([pixels, pixels]))
    write_idx(tmp_path / "train-labels-idx1-ubyte", np.arange(100, dtype=np.uint8) % 2)
    task = load_task(str(tmp_path))
    view, test = task.search_view(), _made(task).test
    places = [{number % 50 for number in rows.numbers} for rows in (view.train, view.validation, test)]
    assert sum(map(len, places)) == 50
    assert len(view.train) + len(view.validation) + len(test) == 100


def test_of_a_file_and_its_packed_form_the_unpacked_one_is_read(tmp_path: Path) -> None:
    pixels, _ = write_pictures(tmp_path, "train", 60)
    write_idx(tmp_path / "train-images-idx3-ubyte.gz", 255 - pixels)
    rows = load_task(str(tmp_path)).search_view().train
    assert (rows.pixels[:, 0] == pixels[np.array(rows.numbers)]).all()


def test_the_chance_of_validation_rows_is_that_of_the_commonest_training_label(tmp_path: Path) -> None:
    for split, rows, often in (("train", 60, 2), ("validation", 10, 1), ("test", 10, 1)):
        write_pictures(tmp_path, split, rows)
        labels = np.where(np.arange(rows) < 0.7 * rows, often, 3 - often).astype(np.uint8)
        write_idx(tmp_path / f"{split}-labels-idx1-ubyte", labels)
    assert load_task(str(tmp_path)).chance == pytest.approx(0.3)


def test_labels_of_validation_rows_alone_are_labels_too(tmp_path: Path) -> None:
    for split, rows in (("train", 60), ("validation", 10), ("test", 10)):
        write_pictures(tmp_path, split, rows)
    write_idx(tmp_path / "validation-labels-idx1-ubyte", np.full(10, 4, np.uint8))
    assert load_task(str(tmp_path)).labels == ("0", "1", "2", "3", "4")


def test_a_changed_pixel_changes_the_digest_of_its_split(tmp_path: Path) -> None:
    pixels, _ = write_pictures(tmp_path, "train", 60)
    before = contents(load_task(str(tmp_path)))
    changed = pixels.copy()
    changed[7, 0, 0] ^= 1
    write_idx(tmp_path / "train-images-idx3-ubyte", changed)
    assert contents(load_task(str(tmp_path))) != before


def test_files_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    write_pictures(tmp_path, "train", 60)
    path = tmp_path / "train-labels-idx1-ubyte"
    write_idx(path, np.zeros(59, np.uint8))
    with pytest.raises(IllegalInput, match=r"60 pictures.*59 labels"):
        load_task(str(tmp_path))
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(IllegalInput, match=r"idx1-ubyte .*59 values.* 54\b"):
        load_task(str(tmp_path))
    path.write_bytes(path.read_bytes()[:6])
    with pytest.raises(IllegalInput, match="within its header"):
        read_idx(path)
    path.write_bytes(b"text")
    with pytest.raises(IllegalInput, match="IDX file"):
        read_idx(path)
    path.unlink()
    with pytest.raises(IllegalInput, match="not both"):
        load_task(str(tmp_path))


def test_a_published_set_needs_its_folder(tmp_path: Path) -> None:
    with pytest.raises(IllegalInput, match="--data DIR"):
        load_task("fashion-mnist")
    with pytest.raises(IllegalInput, match="train-images-idx3-ubyte"):
        load_task("fashion-mnist", tmp_path)


@pytest.mark.parametrize("folder", ["fashion-mnist", "clothes", "mnist"])
def test_the_classes_of_a_published_set_do_not_depend_on_its_folder(tmp_path: Path, folder: str) -> None:
    (tmp_path / folder).mkdir()
    for split in ("train", "t10k"):
        write_pictures(tmp_path / folder, split, 60)
        write_idx(tmp_path / folder / f"{split}-labels-idx1-ubyte", np.arange(60, dtype=np.uint8) % 10)
    task = load_task("fashion-mnist", tmp_path / folder)
    assert (task.labels[0], task.labels[9]) == ("T-shirt/top", "Ankle boot")
    assert "clothing" in task.about
    # named by its path alone, a folder is known by its own name
    last = load_task(str(tmp_path / folder)).labels[9]
    assert last == ("Ankle boot" if folder == "fashion-mnist" else "9")


@pytest.mark.data
def test_fashion_mnist_has_60_000_training_pictures_and_10_000_test_pictures(data_dir: Path) -> None:
    task = load_task("fashion-mnist", data_dir)
    found = contents(task)
    assert [found[name]["rows"] for name in ("training rows", "validation rows", "test rows")] == [54000, 6000, 10000]
    assert task.chance == 0.1
    assert task.labels[9] == "Ankle boot"


def test_pictures_of_one_label_are_refused(tmp_path: Path) -> None:
    write_pictures(tmp_path, "train", 60)
    write_idx(tmp_path / "train-labels-idx1-ubyte", np.full(60, 2, np.uint8))
    with pytest.raises(IllegalInput, match="label 2"):
        load_task(str(tmp_path))


def test_a_published_set_keeps_its_classes_where_few_of_them_are_seen(tmp_path: Path) -> None:
    write_pictures(tmp_path, "train", 60)
    assert len(load_task("fashion-mnist", tmp_path).labels) == 10


@pytest.mark.parametrize("end", ["", ".gz"])
def test_pictures_without_labels_are_those_of_a_file_or_the_test_pictures_of_a_folder(tmp_path: Path, end: str) -> None:
    train, _ = write_pictures(tmp_path, "train", 60, end)
    test, _ = write_pictures(tmp_path, "t10k", 12, end)
    for path, pixels in ((tmp_path, test), (tmp_path / f"train-images-idx3-ubyte{end}", train)):
        table = read_picture_files(path)
        rows = unlabelled_pictures(table.texts)
        assert isinstance(rows, ImageRows)
        assert (rows.pixels[:, 0] == pixels).all()
        assert [row["picture"] for row in table.rows] == list(range(len(pixels)))


def test_of_a_folder_one_file_of_pictures_must_be_meant(tmp_path: Path) -> None:
    pixels, _ = write_pictures(tmp_path, "train", 60)
    assert len(read_picture_files(tmp_path).rows) == len(pixels)  # the only ones
    write_pictures(tmp_path, "validation", 6)
    with pytest.raises(IllegalInput, match=r"train-images.*validation-images"):
        read_picture_files(tmp_path)
    with pytest.raises(IllegalInput, match=r"labels.*\(60,\)"):
        read_picture_files(tmp_path / "train-labels-idx1-ubyte")
    write_idx(tmp_path / "test-images-idx3-ubyte", pixels[:0])
    with pytest.raises(IllegalInput, match="no pictures"):
        read_picture_files(tmp_path)


def test_pictures_of_another_size_than_the_training_pictures_are_refused(tmp_path: Path) -> None:
    write_pictures(tmp_path, "train", 60)
    larger = derive(0, "larger").integers(256, size=(6, 8, 8), dtype=np.uint8)
    write_idx(tmp_path / "validation-images-idx3-ubyte", larger)
    write_idx(tmp_path / "validation-labels-idx1-ubyte", np.arange(6, dtype=np.uint8) % 3)
    view = load_task(str(tmp_path)).search_view()
    reader = PictureReader.fit(view.train, PatchEmbedding(4, 2, 16, channels=1))
    with pytest.raises(IllegalInput, match=r"validation-images.*8, 8.*4, 4"):
        reader.examples(view.validation)


def test_of_packed_and_unpacked_pictures_without_labels_the_unpacked_ones_are_read(tmp_path: Path) -> None:
    pixels, _ = write_pictures(tmp_path, "t10k", 5)
    write_idx(tmp_path / "t10k-images-idx3-ubyte.gz", pixels[:2])
    assert len(read_picture_files(tmp_path).rows) == 5
