"""Where the stages of a compression keep what they made. What is there is whole, and its stage is never redone."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save

from formwright.core.codec import loads
from formwright.core.errors import FormwrightError, IllegalInput
from formwright.core.files import read_regular, write_whole
from formwright.study.delivered import MODELS
from formwright.supernet.importance import Importance

RECORD = "compress.json"
Read = TypeVar("Read")


@dataclass(frozen=True)
class Places:
    """Name the places that the folder of every compression has."""

    out: Path

    @property
    def plan(self) -> Path:
        """Name the file with the numbers of steps that were planned."""
        return self.out / "plan.json"

    @property
    def latency(self) -> Path:
        """Name the file with the times that were measured."""
        return self.out / "latency.json"

    def checkpoints(self, stage: str) -> Path:
        """Name the folder in which a stage saves how far it is."""
        return self.out / "checkpoints" / stage


@dataclass(frozen=True)
class Folders(Places):
    """Name the places in the folder of a compression for a task."""

    @property
    def teacher(self) -> Path:
        """Name the folder of the fine-tuned model."""
        return self.out / MODELS / "teacher"

    @property
    def importance(self) -> Path:
        """Name the file with the scores of heads and channels of the fine-tuned model."""
        return self.out / "importance.safetensors"

    @property
    def movement(self) -> Path:
        """Name the file with the scores that were summed up while it was fine-tuned."""
        return self.out / "movement.safetensors"

    @property
    def space(self) -> Path:
        """Name the file of the search space."""
        return self.out / "space.json"

    @property
    def network(self) -> Path:
        """Name the folder of the trained super-network."""
        return self.out / "super-network"

    @property
    def answers(self) -> Path:
        """Name the file with what the teacher says to the training rows."""
        return self.out / "answers.safetensors"

    def inside(self, path: Path) -> str:
        """Name a place as seen from the folder, which may be moved."""
        return str(path.relative_to(self.out))


def write(path: Path, content: str | bytes) -> None:
    """Write a file whole; raise `IllegalInput` where that fails, as on a full disk."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, content)
    except OSError as error:
        raise IllegalInput(f"cannot write {path}: {error.strerror or error}") from error


def write_json(path: Path, data: Any) -> None:
    """Write plain data whole."""
    write(path, json.dumps(data, indent=1))


def read_json(path: Path) -> Any:
    """Read what `write_json` wrote."""
    try:
        return loads(read_regular(path))
    except (OSError, ValueError) as error:
        raise IllegalInput(f"cannot read {path}: {error}; remove it, and its stage is done anew") from None


def read_stored(path: Path, meaning: Callable[[Any], Read]) -> Read:
    """Read what `write_json` wrote, and make of it what it stands for."""
    data = read_json(path)
    try:
        return meaning(data)
    except FormwrightError as error:
        told = str(error).rstrip(".")
        raise IllegalInput(f"cannot read {path}: {told}; remove it, and its stage is done anew") from None


def write_importance(path: Path, importance: Importance) -> None:
    """Write scores whole."""
    arrays = {f"group-{number}": scores for number, scores in enumerate(importance.scores)}
    arrays |= {} if importance.hidden is None else {"hidden": importance.hidden}
    arrays |= {} if importance.pooled is None else {"pooled": importance.pooled}
    write(path, save({name: np.ascontiguousarray(scores) for name, scores in arrays.items()}))


def read_importance(path: Path) -> Importance:
    """Read what `write_importance` wrote."""
    try:
        arrays = load_file(path)
    except (OSError, SafetensorError) as error:
        raise IllegalInput(f"cannot read {path}: {error}; remove it and the teacher, and both are made anew") from None
    number = sum(name.startswith("group-") for name in arrays)
    groups = tuple(arrays[f"group-{index}"] for index in range(number))
    return Importance(groups, arrays.get("hidden"), arrays.get("pooled"))
