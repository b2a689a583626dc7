"""Carry the tensors of a foreign checkpoint over to our names."""

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from formwright.arch.layers import Block
from formwright.arch.ops import Attention
from formwright.core.errors import IllegalInput
from formwright.nn.hf.designs import Design
from formwright.nn.hf.files import single
from formwright.nn.hf.names import PARTS, QUERY_KEY_VALUE, HeadNames, Names, packed


class Tensors:
    """The tensors of a checkpoint by name, and which of them have been used.

    `prefix` stands before the names of the model below a head; models without a head are saved without it.
    """

    def __init__(self, tensors: Mapping[str, Tensor], prefix: str, folder: Path) -> None:
        self._tensors = {_modern(name): tensor for name, tensor in tensors.items()}
        self._prefix = prefix if any(name.startswith(prefix) for name in self._tensors) else ""
        self._folder = folder
        self._used: set[str] = set()

    def __contains__(self, name: str) -> bool:
        return name in self._tensors

    def below_head(self, name: str) -> str:
        """Give the full name of a part of the model below the head."""
        return self._prefix + name

    def take(self, name: str, *shape: int) -> Tensor:
        """Give a tensor in single precision; refuse the checkpoint if it is absent or not of the `shape` named."""
        if name not in self._tensors:
            raise IllegalInput(f"the checkpoint in {self._folder} lacks the tensor {name}")
        tensor = self._tensors[name]
        if shape and tensor.shape != shape:
            raise IllegalInput(
                f"the weights in {self._folder} do not fit its configuration: {name} is {tuple(tensor.shape)} "
                f"instead of {shape}"
            )
        self._used.add(name)
        return single(name, tensor)

    def left(self) -> tuple[str, ...]:
        """List the tensors that nobody took; tables of numbers counting up are no weights."""
        return tuple(sorted(name for name in self._tensors.keys() - self._used if not name.endswith("position_ids")))


def _modern(name: str) -> str:
    for old, new in ((".gamma", ".weight"), (".beta", ".bias")):  # the first BERTs came from TensorFlow
        if name.endswith(old):
            return name.removesuffix(old) + new
    return name


def carry_model(names: Names, design: Design, tensors: Tensors, pooler: str | None) -> dict[str, Tensor]:
    """Give the weights of a design under the names of a `Transformer`; `pooler` is the full name of its pooler."""
    weights = {}
    for ours, theirs in names.outside.items():
        if ours not in names.optional or tensors.below_head(theirs) in tensors:
            weights[f"encoder.{ours}"] = _fitted(ours, tensors.take(tensors.below_head(theirs)), design)
    if names.class_tokens:
        shape = (1, 1, design.embedding.width)
        rows = [tensors.take(tensors.below_head(name), *shape).flatten(0, 1) for name in names.class_tokens]
        weights["encoder.embedding.class_token"] = torch.cat(rows)  # (class tokens, width)
    for index, block in enumerate(design.layers):
        layer = tensors.below_head(names.layer.format(index))
        for name, tensor in _carry_layer(names.in_layer, block, layer, tensors).items():
            weights[f"encoder.layers.{index}.{name}"] = tensor
    if pooler is not None:
        weights |= {f"pooler.{part}": tensors.take(f"{pooler}.{part}") for part in PARTS}
    return weights


def _fitted(name: str, tensor: Tensor, design: Design) -> Tensor:
    """Drop leading axes of size 1, position rows that are never read, and the axes of a patch."""
    if name == "embedding.positions.table" and tensor.dim() > 1:
        return tensor.flatten(0, -2)[design.skipped :]
    return tensor.flatten(1) if name == "embedding.pixels.weight" and tensor.dim() > 1 else tensor


def _carry_layer(in_layer: Mapping[str, str], block: Block, layer: str, tensors: Tensors) -> dict[str, Tensor]:
    assert isinstance(block.mixer, Attention)
    weights = {
        f"{ours}.{part}": tensors.take(f"{layer}{theirs}.{part}")
        for ours, theirs in in_layer.items()
        for part in PARTS
        if ours not in QUERY_KEY_VALUE
    }
    query_key_value = [f"{layer}{in_layer[part]}" for part in QUERY_KEY_VALUE]
    inner = block.mixer.heads * block.mixer.head_width
    rows = [tensors.take(f"{name}.weight", inner, block.width) for name in query_key_value]
    # some vision models have no bias here alone, which is a bias of zero
    biases = [
        tensors.take(f"{name}.bias", inner) if f"{name}.bias" in tensors else torch.zeros(inner)
        for name in query_key_value
    ]
    weights["mixer.query_key_value.weight"] = packed(rows, block.mixer.heads)
    weights["mixer.query_key_value.bias"] = packed(biases, block.mixer.heads)
    return weights


def carry_head(names: HeadNames, tensors: Tensors) -> dict[str, Tensor]:
    """Give the weights of a task head; refuse an output table that is not the token table."""
    weights = {}
    for ours, theirs in names.tensors.items():
        if theirs.endswith(".bias"):
            weights[ours] = tensors.take(theirs)
        else:
            weights |= {f"{ours}.{part}": tensors.take(f"{theirs}.{part}") for part in PARTS}
    if names.tied is not None and names.tied in tensors:
        table = tensors.take(tensors.below_head("embeddings.word_embeddings.weight"))
        if not torch.equal(tensors.take(names.tied), table):
            raise IllegalInput(
                f"{names.tied} is not the token table; our heads share the two. Import it with head=False"
            )
    return weights
