"""Import pretrained models: a card, its settings and its weights, equal to the original in every output."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from formwright.arch.card import Card
from formwright.core.errors import IllegalInput
from formwright.nn.heads import HeadSpec
from formwright.nn.hf.carry import Tensors, carry_head, carry_model
from formwright.nn.hf.designs import Design, Options, kind_of
from formwright.nn.hf.fields import MODEL_TYPE
from formwright.nn.hf.files import CONFIG, find_folder, read_json, read_weights
from formwright.nn.hf.imported import Imported, tokenizer_files
from formwright.nn.hf.names import HeadNames, Names
from formwright.nn.hf.own import MULTI_LABEL, label_names, read_own
from formwright.nn.seal import check_seal


def from_hf(path_or_name: str | Path, head: bool = True) -> Imported:
    """Import a BERT, RoBERTa, DistilBERT, ELECTRA, ViT or DeiT from a folder or, by name, from the Hugging Face hub.

    With `head`, the task head of the checkpoint comes along where a task of ours has the same one; heads that serve
    pretraining alone are left out. A folder that this package wrote is read back as it is. Only safetensors are read,
    and no code of the checkpoint is run.
    """
    folder = find_folder(path_or_name)
    check_seal(folder)
    config = read_json(folder / CONFIG)
    if config.get("model_type") == MODEL_TYPE:
        return read_own(folder, head)
    kind = kind_of(config)
    options = Options(config)
    options.refuse_others()
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
    weights = carry_model(names, design, tensors, pooler)
    layers = tensors.below_head(names.layer.partition("{}")[0])
    unread = next((name for name in tensors.left() if name.startswith(layers)), None)
    if unread is not None:
        raise IllegalInput(f"the configuration in {folder} has no place for {unread}; without it the model is another")
    spec = None
    if head is not None:
        answers = carry_head(head, tensors)
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
