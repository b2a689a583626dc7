"""Read the files of a checkpoint: JSON and safetensors, never anything that could run code."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from torch import Tensor

from formwright.core.codec import loads
from formwright.core.errors import IllegalInput
from formwright.core.extras import need
from formwright.core.files import read_regular
from formwright.nn.hf.model_folder import verify_checksums

CONFIG = "config.json"
WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
TOKENIZER_FILES = (
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.txt",
    "vocab.json",
    "merges.txt",
    "spiece.model",
    "preprocessor_config.json",
)
_PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl")


def find_folder(path_or_name: str | Path) -> Path:
    """Return the folder of a checkpoint: a folder as it is, or a model's name on the Hugging Face hub, downloaded."""
    folder = Path(path_or_name)
    if os.path.isdir(folder):  # unlike `Path.is_dir`, says no to a name that is too long
        return folder
    name = str(path_or_name)
    if folder.is_absolute() or name.startswith((".", "~")) or name.count("/") > 1 or os.path.exists(folder):
        raise IllegalInput(f"{name} is not a folder; name the folder that holds {CONFIG} and {WEIGHTS}")
    hub = need("huggingface_hub", "hf")
    try:
        return Path(hub.snapshot_download(name, allow_patterns=[CONFIG, "*.safetensors", INDEX, *TOKENIZER_FILES]))
    except (OSError, ValueError) as error:  # every error of the hub, of the network and of a malformed name
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        raise IllegalInput(
            f"there is no folder {name}, and no model of that name could be fetched from the Hugging Face hub "
            f"({reason}). Offline, name a folder that holds {CONFIG} and {WEIGHTS}"
        ) from error


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object from a file; raise for anything else."""
    try:
        data = loads(read_regular(path))
    except OSError as error:
        raise IllegalInput(f"cannot read {path}: {error.strerror or error}") from None
    except ValueError as error:
        raise IllegalInput(f"{path} is not JSON that can be read: {error}") from None
    if not isinstance(data, dict):
        raise IllegalInput(f"{path} must hold a JSON object")
    return data


def as_json(data: Mapping[str, Any]) -> str:
    """Return a JSON object as transformers writes it: keys sorted, two blanks deep."""
    return json.dumps(data, indent=2, sort_keys=True) + "\n"


def write_json(path: Path, data: Mapping[str, Any]) -> None:
    path.write_text(as_json(data), encoding="utf-8")


def read_weights(folder: Path) -> dict[str, Tensor]:
    """Read all tensors of a checkpoint, whole or in shards."""
    if (folder / WEIGHTS).is_file():
        return _read_tensors(folder / WEIGHTS)
    if not (folder / INDEX).is_file():
        raise IllegalInput(_no_weights(folder))
    shards = read_json(index := folder / INDEX).get("weight_map")
    if not isinstance(shards, dict) or not all(isinstance(name, str) for name in shards.values()):
        raise IllegalInput(f"{index} has no weight_map from tensors to files")
    foreign = [name for name in shards.values() if Path(name).name != name or not name.endswith(".safetensors")]
    if foreign:
        raise IllegalInput(f"{index} names {foreign[0]!r}; only safetensors files of the same folder are read")
    read = {name: _read_tensors(folder / name) for name in sorted(set(shards.values()))}
    absent = [tensor for tensor, name in shards.items() if tensor not in read[name]]
    if absent:
        raise IllegalInput(f"{folder / shards[absent[0]]} lacks the tensor {absent[0]}, which {INDEX} says it holds")
    # a tensor in a shard that the index does not list is a leftover, and may be stale
    return {tensor: read[name][tensor] for tensor, name in shards.items()}


def _read_tensors(path: Path) -> dict[str, Tensor]:
    try:
        with safe_open(path, framework="pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no mapping)
    except (OSError, SafetensorError) as error:
        raise IllegalInput(f"cannot read {path}: {error}") from None


def is_whole(folder: Path) -> bool:
    """Return whether a model's files are there and as they were written."""
    try:
        verify_checksums(folder)
        read_json(folder / CONFIG)
    except IllegalInput:
        return False
    return can_be_read(folder / WEIGHTS)


def can_be_read(path: Path) -> bool:
    """Return whether a file of tensors is there and not cut short, without reading them."""
    try:
        with safe_open(path, framework="pt"):
            return True
    except (OSError, SafetensorError):
        return False


def single(name: str, tensor: Tensor) -> Tensor:
    """Return a tensor in single precision; raise for integers and complex numbers, which are never weights."""
    if not tensor.is_floating_point():
        raise IllegalInput(f"the tensor {name} holds {str(tensor.dtype).removeprefix('torch.')}, not floating point")
    return tensor.float()


def _no_weights(folder: Path) -> str:
    pickles = sorted(path.name for pattern in _PICKLES for path in folder.glob(pattern))
    if not pickles:
        return f"{folder} holds no {WEIGHTS}"
    return (
        f"{folder} holds {pickles[0]} but no {WEIGHTS}; pickles can run code and are not read. If you trust it, "
        'convert it there: python -c "import torch, safetensors.torch as s; s.save_file({name: '
        "tensor.clone().contiguous() for name, tensor in "
        f"torch.load('{pickles[0]}', weights_only=True).items()}}, '{WEIGHTS}', {{'format': 'pt'}})\""
    )
