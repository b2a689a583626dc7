from pathlib import Path

import pytest

from formwright.core.errors import IllegalInput
from formwright.tasks.labelled_folders import has_labelled_files, labelled_files


def touch(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


def test_labels_are_the_folders_by_name_and_files_are_in_order(tmp_path: Path) -> None:
    touch(tmp_path, "dog/2.png", "dog/1.PNG", "cat/3.png", "cat/notes.txt", ".hidden/1.png", "cat/.1.png")
    found = labelled_files(tmp_path, (".png",))
    assert found.labels == ("cat", "dog")
    ((split, paths, labels),) = found.files
    assert (split, [path.name for path in paths], labels) == ("train", ["3.png", "1.PNG", "2.png"], (0, 1, 1))


def test_folders_of_splits_hold_those_of_labels(tmp_path: Path) -> None:
    touch(tmp_path, "train/a/1.wav", "train/b/1.wav", "val/a/2.wav", "test/b/3.wav")
    found = labelled_files(tmp_path, (".wav",))
    assert [(split, labels) for split, _, labels in found.files] == [
        ("test", (1,)),
        ("train", (0, 1)),
        ("validation", (0,)),
    ]
    touch(tmp_path, "test/notes/about.txt")  # no label: none of its files is a row
    assert len(labelled_files(tmp_path, (".wav",)).paths) == 4
    touch(tmp_path, "test/c/3.wav")
    with pytest.raises(IllegalInput, match="c is a label that has no training files"):
        labelled_files(tmp_path, (".wav",))


def test_a_folder_is_recognised_by_the_ends_of_its_files(tmp_path: Path) -> None:
    assert not has_labelled_files(tmp_path / "missing", (".wav",))
    touch(tmp_path, "1.wav", "a/b/c.wav", "train/a/x.png")
    assert has_labelled_files(tmp_path, (".png",))
    assert not has_labelled_files(tmp_path, (".wav",))


def test_one_label_is_too_few(tmp_path: Path) -> None:
    touch(tmp_path, "a/1.wav", "b/notes.txt")
    with pytest.raises(IllegalInput, match="'a'"):
        labelled_files(tmp_path, (".wav",))
