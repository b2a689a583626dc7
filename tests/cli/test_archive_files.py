"""IDX files, files of the UCR archive, and CIFAR's pictures from the command line: train, search, judge and predict."""

import tarfile
from pathlib import Path

import numpy as np
import pytest
from tests.cli.conftest import Run
from tests.cli.test_other_rows import again, predictions, trained
from tests.tasks.test_idx import write_idx

from formwright.core.rng import derive

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(300)]
SHORT = ("--trials", 2, "--steps", 5, "--final-steps", 5, "--workers", 1, "--batch", 8)
LABELS = [str(row % 3) for row in range(12)]  # of the test rows


def write_pictures(folder: Path) -> Path:
    """Write IDX files of dark, grey and bright pictures of 8 pixels."""
    folder.mkdir()
    for split, rows in (("train", 90), ("t10k", len(LABELS))):
        labels = np.arange(rows, dtype=np.uint8) % 3
        noise = derive(rows, "pictures").integers(40, size=(rows, 8, 8), dtype=np.uint8)
        write_idx(folder / f"{split}-images-idx3-ubyte.gz", noise + 100 * labels[:, None, None])
        write_idx(folder / f"{split}-labels-idx1-ubyte.gz", labels)
    return folder


def write_archive(folder: Path, form: str) -> Path:
    """Write a set of the UCR archive: waves of three frequencies."""
    folder.mkdir()
    for split, rows in (("TRAIN", 90), ("TEST", len(LABELS))):
        noise = derive(rows, "series").normal(scale=0.1, size=(rows, 40))
        waves = [np.sin(np.arange(40) * (0.2, 0.7, 1.5)[row % 3]) + noise[row] for row in range(rows)]
        cells = [[f"{number:.4f}" for number in wave] for wave in waves]
        if form == "ts":
            head = "@timeStamps false\n@dimensions 1\n@classLabel true 0 1 2\n@data\n"
            content = head + "".join(f"{','.join(one)}:{row % 3}\n" for row, one in enumerate(cells))
        else:
            content = "".join("\t".join([str(row % 3), *one]) + "\n" for row, one in enumerate(cells))
        (folder / f"Waves_{split}.{form}").write_text(content)
    return folder


def test_idx_files_are_learned_judged_again_and_predicted(run: Run, tmp_path: Path) -> None:
    data = write_pictures(tmp_path / "shades")
    model = trained(run, tmp_path, "grey", "--task", data)
    again(run, model, "--task", data)
    found = predictions(run, model, data)  # the test pictures
    assert np.mean([row["prediction"] == label for row, label in zip(found, LABELS, strict=True)]) > 0.8
    assert predictions(run, model, data / "t10k-images-idx3-ubyte.gz") == found
    in_onnx = predictions(run, model.parent / "onnx", data)
    assert [row["prediction"] for row in in_onnx] == [row["prediction"] for row in found]


@pytest.mark.usefixtures("one_process")
def test_a_design_for_idx_files_is_searched(run: Run, tmp_path: Path) -> None:
    data, out = write_pictures(tmp_path / "shades"), tmp_path / "study"
    run("search", "autoformer-nano", "--task", data, *SHORT, "--out", out).printed("accuracy")
    model = next((out / "models").iterdir())
    again(run, model, "--task", data, onnx=False)
    assert {row["prediction"] for row in predictions(run, model, data)} <= {"0", "1", "2"}


@pytest.mark.parametrize("form", ["ts", "tsv"])
def test_series_of_the_archive_are_learned_judged_again_and_predicted(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    data = write_archive(tmp_path / "Waves", form)
    model = trained(run, tmp_path, "frames", "--task", data)
    run("evaluate", model).refused("Waves", "--task PATH")
    again(run, model, "--task", data, onnx=False)
    monkeypatch.chdir(tmp_path)
    again(run, model, onnx=False)  # the folder of that name is here
    found, of_file = (run("predict", model, one, "--json").data for one in (data, data / f"Waves_TEST.{form}"))
    assert [row["prediction"] for row in found["rows"]] == LABELS
    assert of_file["rows"] == found["rows"]


@pytest.mark.data
def test_pictures_of_cifar_are_learned_and_predicted(run: Run, tmp_path: Path, data_dir: Path) -> None:
    with tarfile.open(data_dir / "cifar10-jpg" / "cifar10_subset_jpg.tar.gz") as packed:
        few = [one for one in packed.getmembers() if one.isdir() or int(Path(one.name).stem) < 20]
        packed.extractall(tmp_path / "cifar", few, filter="data")
    data = tmp_path / "cifar"
    options = ("--task", data, "--steps", 10, "--batch", 8, "--out", tmp_path / "out")
    run("train", "vit-nano-32", *options).printed("accuracy")
    again(run, tmp_path / "out" / "model", "--task", data, onnx=False)
    found = predictions(run, tmp_path / "out" / "model", data / "test")
    assert len(found) == 200
    assert {row["prediction"] for row in found} <= {path.name for path in (data / "train").iterdir()}
