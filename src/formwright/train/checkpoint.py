"""Checkpoints: everything a run needs to go on exactly where it stopped, written whole or not at all.

A checkpoint is a folder with the weights and the optimiser's moments as safetensors, and a JSON file with the step,
the losses so far and checksums of both. The newest two are kept, so that a damaged one never costs the whole
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

from formwright.core.errors import IllegalInput

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
    try:
        return _write(folder, checkpoint)
    except OSError as error:  # a full disk, among others
        told = f"cannot save step {checkpoint.step:,} in {folder}: {error.strerror or error}"
        raise IllegalInput(f"{told}; what was saved before is whole, and the run can go on from there") from error


def _write(folder: Path, checkpoint: Checkpoint) -> Path:
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
    for later in _folders(folder):
        if _step(later) > checkpoint.step and _read(later) is None:  # damaged, and none the less the newest
            _remove(later)
    for old in _folders(folder)[_KEPT:]:
        _remove(old)
    return final


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _fill(draft: Path, checkpoint: Checkpoint) -> None:
    tensors = save({key: value.detach().contiguous() for key, value in checkpoint.tensors.items()})
    told = {"step": checkpoint.step, "sha256": hashlib.sha256(tensors).hexdigest(), "facts": dict(checkpoint.facts)}
    _flush(draft / "tensors.safetensors", tensors)
    _flush(draft / "facts.json", json.dumps(told | {"sha256 of the rest": _checksum(told)}).encode())


def _checksum(told: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps([told["step"], told["sha256"], told["facts"]]).encode()).hexdigest()


def _put(draft: Path, final: Path) -> None:
    """Make a draft the checkpoint; where the same step is there and whole, as from another process, that one stays."""
    if _read(final) is None:
        _remove(final)
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
    return max(map(_step, _folders(folder)), default=0)


def newest(folder: Path) -> Checkpoint | None:
    """Read the newest checkpoint that is whole, passing over damaged ones; None when there is none."""
    for candidate in _folders(folder):
        found = _read(candidate)
        if found is not None:
            return found
    return None


def _folders(folder: Path) -> list[Path]:
    found = [path for path in folder.glob("step-*") if path.name.removeprefix("step-").isdecimal()]
    return sorted(found, key=_step, reverse=True)


def _step(path: Path) -> int:
    return int(path.name.removeprefix("step-"))


def _read(folder: Path) -> Checkpoint | None:
    """Read one checkpoint; None when it is damaged."""
    try:
        tensors = (folder / "tensors.safetensors").read_bytes()
        data = json.loads((folder / "facts.json").read_bytes())
        # older checkpoints have no checksum of the rest
        if data.get("sha256 of the rest", _checksum(data)) != _checksum(data):
            return None
        if data["sha256"] != hashlib.sha256(tensors).hexdigest():
            return None
        return Checkpoint(data["step"], load(tensors), data["facts"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, SafetensorError):
        return None


def _flush(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
