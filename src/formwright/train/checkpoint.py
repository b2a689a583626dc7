"""Checkpoints: everything a run needs to go on exactly where it stopped, written whole or not at all.

A checkpoint is a folder with the weights and the optimiser's moments as safetensors, and a JSON file with the step,
the losses so far and a checksum of the tensors. The newest two are kept, so that a damaged one never costs the whole
run.
"""

import errno
import hashlib
import json
import os
import platform
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

_KEPT = 2
_DAY = 24 * 60 * 60  # seconds


@dataclass(frozen=True)
class Checkpoint:
    """The state of a run after `step` updates: tensors by name, and facts that are JSON."""

    step: int
    tensors: Mapping[str, Tensor]
    facts: Mapping[str, Any]


def write(folder: Path, checkpoint: Checkpoint) -> Path:
    """Write a checkpoint below `folder` and drop all but the newest; an interruption leaves the older ones intact."""
    name = f"step-{checkpoint.step:09d}"
    draft, final = folder / f".{name}.{os.getpid()}.{_machine()}", folder / name
    _clear_drafts(folder)
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    try:
        _fill(draft, checkpoint)
        _put(draft, final)
    finally:
        shutil.rmtree(draft, ignore_errors=True)  # it is still there only where the disk was full, or another quicker
    for old in _folders(folder)[_KEPT:]:
        shutil.rmtree(old, ignore_errors=True)
    return final


def _fill(draft: Path, checkpoint: Checkpoint) -> None:
    tensors = save({key: value.detach().contiguous() for key, value in checkpoint.tensors.items()})
    facts = {"step": checkpoint.step, "sha256": hashlib.sha256(tensors).hexdigest(), "facts": dict(checkpoint.facts)}
    _flush(draft / "tensors.safetensors", tensors)
    _flush(draft / "facts.json", json.dumps(facts).encode())


def _put(draft: Path, final: Path) -> None:
    """Make a draft the checkpoint; where the same step is there and whole, as from another process, that one stays."""
    if _read(final) is None:
        shutil.rmtree(final, ignore_errors=True)
    try:
        draft.rename(final)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise


def _clear_drafts(folder: Path) -> None:
    """Remove what processes left that were killed while they wrote."""
    for draft in folder.glob(".step-*"):
        if _is_left(draft):
            shutil.rmtree(draft, ignore_errors=True)


def _is_left(draft: Path) -> bool:
    process, _, machine = draft.name.removeprefix(".step-").partition(".")[2].partition(".")
    try:
        if machine == _machine() and process.isdecimal() and os.name == "posix":
            os.kill(int(process), 0)  # which only asks whether there is such a process
        return time.time() - draft.stat().st_mtime > _DAY
    except ProcessLookupError:
        return True
    except OSError:  # the process is another user's, or the draft has become a checkpoint by now
        return False


def _machine() -> str:
    return platform.node()  # processes of other machines may write to the same folder


def newest_step(folder: Path) -> int:
    """Give the step of the newest checkpoint, 0 when there is none, without reading whether it is whole."""
    steps = (path.name.removeprefix("step-") for path in _folders(folder))
    return max((int(step) for step in steps if step.isdecimal()), default=0)


def newest(folder: Path) -> Checkpoint | None:
    """Read the newest checkpoint that is whole, passing over damaged ones; None when there is none."""
    for candidate in _folders(folder):
        found = _read(candidate)
        if found is not None:
            return found
    return None


def _folders(folder: Path) -> list[Path]:
    return sorted(folder.glob("step-*"), reverse=True) if folder.is_dir() else []


def _read(folder: Path) -> Checkpoint | None:
    """Read one checkpoint; None when it is damaged."""
    try:
        tensors = (folder / "tensors.safetensors").read_bytes()
        data = json.loads((folder / "facts.json").read_bytes())
        if data["sha256"] != hashlib.sha256(tensors).hexdigest():
            return None
        return Checkpoint(data["step"], load(tensors), data["facts"])
    except (OSError, ValueError, KeyError, TypeError, SafetensorError):
        return None


def _flush(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
