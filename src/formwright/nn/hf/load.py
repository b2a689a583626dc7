"""Import pretrained models: a card, its settings and its weights, equal to the original in every output."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from formwright.arch.card import Card
from formwright.arch.layers import Block
from formwright.arch.ops import Attention
from formwright.core.errors import IllegalInput
from formwright.nn.hf.checkpoint_files import CONFIG, find_folder, read_json, read_weights, single
from formwright.nn.hf.config_fields import MODEL_TYPE
from formwright.nn.hf.imported import MULTI_LABEL, Imported, label_names, read_own, tokenizer_files
from formwright.nn.hf.model_folder import verify_checksums
from formwright.nn.hf.model_types import Design, ForeignConfig, model_type_of
from formwright.nn.hf.tensor_names import PARTS, QUERY_KEY_VALUE, HeadNames, Names, packed
from formwright.nn.task_model import HeadSpec


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
        """Return the full name of a part of the model below the head."""
        return self._prefix + name

    def take(self, name: str, *shape: int) -> Tensor:
        """Return a tensor in single precision; refuse the checkpoint if it is absent or not of the `shape` named."""
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
        """List the unused tensors, except for position ids, which are not weights."""
        return tuple(sorted(name for name in self._tensors.keys() - self._used if not name.endswith("position_ids")))


def _modern(name: str) -> str:
    for old, new in ((".gamma", ".weight"), (".beta", ".bias")):  # the first BERTs came from TensorFlow
        if name.endswith(old):
            return name.removesuffix(old) + new
    return name


def convert_model(names: Names, design: Design, tensors: Tensors, pooler: str | None) -> dict[str, Tensor]:
    """Return the weights of a design under the names of a `Transformer`; `pooler` is the full name of its pooler."""
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
        for name, tensor in _convert_layer(names.in_layer, block, layer, tensors).items():
            weights[f"encoder.layers.{index}.{name}"] = tensor
    if pooler is not None:
        weights |= {f"pooler.{part}": tensors.take(f"{pooler}.{part}") for part in PARTS}
    return weights


def _fitted(name: str, tensor: Tensor, design: Design) -> Tensor:
    """Drop leading axes of size 1, position rows that are never read, and the axes of a patch."""
    if name == "embedding.positions.table" and tensor.dim() > 1:
        return tensor.flatten(0, -2)[design.skipped :]
    return tensor.flatten(1) if name == "embedding.pixels.weight" and tensor.dim() > 1 else tensor


def _convert_layer(in_layer: Mapping[str, str], block: Block, layer: str, tensors: Tensors) -> dict[str, Tensor]:
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


def convert_head(names: HeadNames, tensors: Tensors) -> dict[str, Tensor]:
    """Return the weights of a task head; refuse an output table that is not the token table."""
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


def from_hf(path_or_name: str | Path, head: bool = True) -> Imported:
    """Import a BERT, RoBERTa, DistilBERT, ELECTRA, ViT or DeiT from a folder or, by name, from the Hugging Face hub.

    With `head`, the task head of the checkpoint is imported if we have the same one; pure pretraining heads are left
    out. Folders written by this package are read too. Only safetensors are read, and no code of the checkpoint is run.
    """
    folder = find_folder(path_or_name)
    verify_checksums(folder)
    config = read_json(folder / CONFIG)
    if config.get("model_type") == MODEL_TYPE:
        return read_own(folder, head)
    kind = model_type_of(config)
    options = ForeignConfig(config)
    options.check_supported()
    design = kind.design(options)
    names = _head_names(kind.names, config, design) if head else None
    tensors = Tensors(read_weights(folder), kind.names.prefix, folder)
    found = _imported(kind.names, design, names, tensors, label_names(config), folder)
    if found.head is not None and config.get("problem_type") == MULTI_LABEL:
        return replace(found, head=replace(found.head, multi_label=True))
    return found


def _imported(
    names: Names, design: Design, head: HeadNames | None, tensors: Tensors, labels: tuple[str, ...], folder: Path
) -> Imported:
    pooler = _pooler(names, head, tensors)
    weights = convert_model(names, design, tensors, pooler)
    layers = tensors.below_head(names.layer.partition("{}")[0])
    unread = next((name for name in tensors.left() if name.startswith(layers)), None)
    if unread is not None:
        raise IllegalInput(f"the configuration in {folder} has no place for {unread}; without it the model is another")
    spec = None
    if head is not None:
        answers = convert_head(head, tensors)
        weights = {f"transformer.{name}": tensor for name, tensor in weights.items()} | answers
        count = answers["head.output.weight"].shape[0] if "head.output.weight" in answers else 2
        spec = HeadSpec(head.task, count)
    return Imported(
        card=Card(encoder=design.stack, pooler=pooler is not None),
        settings=design.settings,
        weights=weights,
        head=spec,
        labels=labels if spec is not None and len(labels) == spec.labels else (),
        tokenizer_files=tokenizer_files(folder),
        dropped=tensors.left(),
    ).checked(folder)


def _head_names(names: Names, config: Mapping[str, Any], design: Design) -> HeadNames | None:
    architectures = config.get("architectures")
    name = str(architectures[0]) if isinstance(architectures, list) and architectures else "Model"
    if name.endswith(("Model", *names.unused)) and not name.endswith("HeadModel"):
        return None
    found = next((head for ending, head in names.heads.items() if name.endswith(ending)), None)
    if found is None:
        known = ", ".join(names.heads)
        reason = next((f": {why}" for ending, why in names.refused.items() if name.endswith(ending)), "")
        raise IllegalInput(
            f"the head of {name} is not supported{reason}; supported are {known}. Import it with head=False"
        )
    if found.follows_activation and any(layer.activation != "gelu" for layer in design.layers):
        raise IllegalInput(f"the head of {name} has another activation than gelu. Import it with head=False")
    return found


def _pooler(names: Names, head: HeadNames | None, tensors: Tensors) -> str | None:
    """Find the dense layer over the first token, under its full name."""
    if head is not None:
        return head.pooler
    if names.pooler is None or f"{tensors.below_head(names.pooler)}.weight" not in tensors:
        return None
    return tensors.below_head(names.pooler)
