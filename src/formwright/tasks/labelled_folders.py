"""Folders with one folder of files for each label: `DIR/LABEL/file`, or `DIR/train/LABEL/file` and so on."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from formwright.core.errors import IllegalInput
from formwright.tasks.own_files import SPLIT_NAMES
from formwright.tasks.rows import Splits
from formwright.tasks.task import Task
from formwright.tasks.text_files import reading


@dataclass(frozen=True)
class LabelledFiles:
    """Files of each split in order, the number of the label of each, and the names of the labels."""

    files: tuple[tuple[str, tuple[Path, ...], tuple[int, ...]], ...]
    labels: tuple[str, ...]

    @property
    def paths(self) -> list[Path]:
        """List all files."""
        return [path for _, paths, _ in self.files for path in paths]


def has_labelled_files(folder: Path, endings: Sequence[str]) -> bool:
    """Return whether a folder has folders of files that end so, perhaps inside folders for the splits."""
    if not os.path.isdir(folder):
        return False
    inner = _split_folders(folder).values() or [folder]
    return any(_is_one(file, endings) for part in inner for label in _folders(part) for file in list(os.scandir(label)))


def labelled_files(folder: Path, endings: Sequence[str]) -> LabelledFiles:
    """List the files of a folder by split and label; labels are the folders of the training files, by name."""
    splits = _split_folders(folder) or {"train": folder}
    found = {split: _by_label(part, endings) for split, part in splits.items()}
    labels = tuple(label for label, files in found["train"].items() if files)
    if len(labels) < 2:
        found_here = f"files of one label only, {labels[0]!r}" if labels else "no files in folders of labels"
        raise IllegalInput(f"{splits['train']} has {found_here}; expected a folder for each of several labels")
    for split, files in found.items():
        if strange := [label for label in files if files[label] and label not in labels]:
            raise IllegalInput(
                f"{splits[split] / strange[0]} is a label that has no training files in {splits['train']}; add some, "
                "or remove the folder"
            )
    return LabelledFiles(tuple(_listed(split, files, labels) for split, files in found.items()), labels)


def _listed(
    split: str, files: dict[str, list[Path]], labels: tuple[str, ...]
) -> tuple[str, tuple[Path, ...], tuple[int, ...]]:
    pairs = [(path, place) for place, label in enumerate(labels) for path in files.get(label, [])]
    return split, tuple(path for path, _ in pairs), tuple(place for _, place in pairs)


def _by_label(folder: Path, endings: Sequence[str]) -> dict[str, list[Path]]:
    return {
        label.name: sorted(Path(file.path) for file in os.scandir(label) if _is_one(file, endings))
        for label in _folders(folder)
    }


def _split_folders(folder: Path) -> dict[str, Path]:
    """Return the folders of splits, if one of them is for training."""
    named = {split: part for part in _folders(folder) for split, names in SPLIT_NAMES.items() if part.name in names}
    return named if "train" in named else {}


def _folders(folder: Path) -> list[Path]:
    with reading(folder):
        return sorted(Path(part.path) for part in os.scandir(folder) if part.is_dir() and part.name[0] != ".")


def _is_one(file: "os.DirEntry[str]", endings: Sequence[str]) -> bool:
    return file.name[0] != "." and file.name.lower().endswith(tuple(endings)) and file.is_file()


def classes_task(name: str, kind: Any, source: Callable[[], Splits[Any]], labels: tuple[str, ...], about: str) -> Task:
    """Make a task of rows with one label each; its chance is that of the most frequent label of the training rows."""
    splits = source()
    often = np.bincount(splits.train.labels, minlength=len(labels)).argmax()
    chance = float((splits.validation.labels == often).mean())
    return Task(name, kind, "accuracy", source, labels=labels, chance=chance, about=about)
