"""What trials write to shared weights, one file each, and the store that follows from a history.

A study's log is its only state, so nobody keeps a store. The rule: every finished trial has left what it writes as a
file of its own, and the store that an evaluation starts from is the fresh store of the study's seed with the files of
all finished trials in its history written over it, in the order of their numbers. That history is the one its request
was made from, which the log can give again at any time. Hence:

- A study with one worker that was killed and resumed starts every trial from the same bytes as if it had not been.
- Workers need no lock and can spoil nothing: they only add files. Whoever finishes first, the store after all of them
  is the same. A trial does not see those that were under way when it was asked for.
- A trial that failed, or whose worker died, is in no store.

Files are named by their content, so that a damaged one is noticed before it is used, and its trial can be pretrained
again (`bi_branch`): the name tells whether the same came out. They reach the disk before the log speaks of them. A
trial writes the tensors that its design has and nothing else: about as much as other evaluators keep of a trial. There
is no copy of a store that could be broken or out of date: each tensor is read from the last file that has it, and from
no other.
"""

import hashlib
import os
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path

from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from formwright.core.errors import EvaluationFailed, IllegalInput
from formwright.core.files import write_whole
from formwright.core.records import History, Trial
from formwright.supernet.branch_store import Store, Weights, folded

BRANCHES = "branches"  # the name of the artifact, and of its folder
_DIGITS = 32  # of a digest, in the name of a file


def store_after(fresh: Store, history: History, folder: Path) -> Store:
    """Give the store that the finished trials of a history leave; those that shared no weights do not count."""
    return folded(fresh, [_read(trial, folder) for trial in sharing(history)])


def sharing(history: History) -> list[Trial]:
    """List the finished trials that left weights to others, in the order of their numbers."""
    return [trial for trial in history.finished if trial.observation and BRANCHES in trial.observation.artifacts]


def is_whole(trial: Trial, folder: Path) -> bool:
    """Tell whether the file that a trial left is there, with the content that it was written with."""
    path = _path(trial, folder)
    try:
        told = path.stat()
        return _has_its_content(path, told.st_size, told.st_mtime_ns)
    except OSError:
        return False


def keep(writes: Weights, folder: Path) -> str:
    """Write a file for what a trial writes, and give its name in the folder; an equal file stays as it is."""
    content = _content(writes)
    name = _name(content)
    path = folder / name
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if not (path.is_file() and path.read_bytes() == content):
            write_whole(path, content)
            _reach_the_disk(path)
    except OSError as error:
        raise IllegalInput(f"cannot write {path}: {error.strerror or error}") from error
    return name


def put_back(trial: Trial, writes: Weights, folder: Path) -> None:
    """Write the file of a trial anew if it held these writes; otherwise do nothing."""
    assert trial.observation is not None
    if _name(_content(writes)) == trial.observation.artifacts[BRANCHES]:
        keep(writes, folder)


def _read(trial: Trial, folder: Path) -> "_File":
    path = _path(trial, folder)
    if not is_whole(trial, folder):
        raise EvaluationFailed(_lost(trial, f"{path} is damaged" if path.exists() else f"there is no {path}"))
    try:
        return _File(path)
    except (OSError, SafetensorError) as error:
        raise EvaluationFailed(_lost(trial, f"cannot read {path}: {error}")) from None


def _lost(trial: Trial, why: str) -> str:
    return (
        f"cannot start from the weights that trial {trial.number} left: {why}. Later trials need them: put the file "
        "back from a copy of the study, then resume it, or begin the study anew in another folder"
    )


def _path(trial: Trial, folder: Path) -> Path:
    assert trial.observation is not None
    return folder / trial.observation.artifacts[BRANCHES]


def _content(writes: Weights) -> bytes:
    return save({name: tensor.contiguous() for name, tensor in sorted(writes.items())}, {"format": "pt"})


def _name(content: bytes) -> str:
    return f"{BRANCHES}/{_digest(content)}.safetensors"


def _reach_the_disk(path: Path) -> None:
    """Wait until a power cut could take neither the content of a file nor its name."""
    for one in (path, path.parent):
        handle = os.open(one, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@lru_cache(maxsize=1 << 14)
def _has_its_content(path: Path, size: int, time: int) -> bool:
    """Tell whether a file has the content that it is named by; asked once for each file in a process."""
    return path.stem == _digest(path.read_bytes())


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:_DIGITS]


class _File(Mapping[str, Tensor]):
    """The tensors of a file, each read when it is asked for; the file is not kept open in between."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with safe_open(path, framework="pt") as file:
            self._names = tuple(file.keys())

    def __getitem__(self, name: str) -> Tensor:
        with safe_open(self._path, framework="pt") as file:
            tensor: Tensor = file.get_tensor(name)
        return tensor

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)
