"""Checkpoints: everything a run needs to resume exactly where it stopped, written whole or not at all.

A checkpoint is a folder with the weights and the optimiser's moments as safetensors, and a JSON file with the step,
the losses so far and checksums of both. The newest two are kept, so that a damaged one never costs the whole run.
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

import torch
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
    name = f"step-{checkpoint.step:09d}"
    # processes of other machines may write to the same folder
    draft, final = folder / f".{name}.{os.getpid()}.{platform.node()}", folder / name
    try:
        for other in folder.glob(".step-*"):
            if other == draft or _is_left(other):
                shutil.rmtree(other, ignore_errors=True)
        draft.mkdir(parents=True)
        tensors = save({key: value.detach().contiguous() for key, value in checkpoint.tensors.items()})
        facts = {"step": checkpoint.step, "sha256": _sha256(tensors), "facts": dict(checkpoint.facts)}
        _flush(draft / "tensors.safetensors", tensors)
        _flush(draft / "facts.json", json.dumps(facts | {"sha256 of the rest": _checksum(facts)}).encode())
        _put(draft, final)
        for later in _folders(folder):
            if _step(later) > checkpoint.step and _read(later) is None:  # damaged, but with the highest step
                _remove(later)
        for old in _folders(folder)[_KEPT:]:
            _remove(old)
    except OSError as error:  # a full disk, among others
        raise IllegalInput(
            f"cannot save step {checkpoint.step:,} in {folder}: {error.strerror or error}; earlier checkpoints are "
            "intact, and the run can resume from them"
        ) from error
    finally:  # the draft still exists only if the disk was full or another process was faster
        shutil.rmtree(draft, ignore_errors=True)
    return final


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _checksum(data: Mapping[str, Any]) -> str:
    return _sha256(json.dumps([data["step"], data["sha256"], data["facts"]]).encode())


def _put(draft: Path, final: Path) -> None:
    """Turn a draft into the checkpoint, unless another process has already written an intact one of the same step."""
    if _read(final) is None:
        _remove(final)
    try:
        draft.rename(final)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise


def _is_left(draft: Path) -> bool:
    """Return whether a draft is that of a process that was killed while writing."""
    process, _, machine = draft.name.removeprefix(".step-").partition(".")[2].partition(".")
    try:
        if machine == platform.node() and process.isdecimal() and os.name == "posix":
            os.kill(int(process), 0)  # signal 0 only checks that the process exists
        return time.time() - draft.stat().st_mtime > _DAY
    except ProcessLookupError:
        return True
    except OSError:  # another user's process, or the draft has become a checkpoint
        return False


def newest_step(folder: Path) -> int:
    """Return the step of the newest checkpoint, 0 if there is none; does not check that it is intact."""
    return max(map(_step, _folders(folder)), default=0)


def newest(folder: Path) -> Checkpoint | None:
    """Read the newest intact checkpoint, skipping damaged ones; None if there is none."""
    return next((found for path in _folders(folder) if (found := _read(path)) is not None), None)


def _folders(folder: Path) -> list[Path]:
    found = [path for path in folder.glob("step-*") if path.name.removeprefix("step-").isdecimal()]
    return sorted(found, key=_step, reverse=True)


def _step(path: Path) -> int:
    return int(path.name.removeprefix("step-"))


def _read(folder: Path) -> Checkpoint | None:
    """Read one checkpoint; None if it is damaged."""
    try:
        tensors = (folder / "tensors.safetensors").read_bytes()
        data = json.loads((folder / "facts.json").read_bytes())
        if data["sha256 of the rest"] != _checksum(data) or data["sha256"] != _sha256(tensors):
            return None
        return Checkpoint(data["step"], load(tensors), data["facts"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, SafetensorError):
        return None


def _flush(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def weights_digest(weights: Mapping[str, Tensor]) -> str:
    """Return the SHA-256 of tensors by their names, in hexadecimal."""
    digest = hashlib.sha256()
    for name, tensor in sorted(weights.items()):
        digest.update(json.dumps([name, str(tensor.dtype), list(tensor.shape)]).encode())
        # as bytes: numpy lacks some of torch's types, such as bfloat16
        digest.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()
