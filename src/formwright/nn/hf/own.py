"""Read back the folders that `formwright.nn.hf.save` writes, in plain torch."""

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, cast

from torch import Tensor

from formwright.arch.card import Card
from formwright.core.errors import IllegalDesign, IllegalInput
from formwright.nn.heads import HeadSpec, Task
from formwright.nn.hf.fields import MODEL_TYPE, task_of
from formwright.nn.hf.files import CONFIG, read_json, read_weights, single
from formwright.nn.hf.imported import Imported, tokenizer_files
from formwright.nn.seal import check_seal
from formwright.nn.settings import Settings
from formwright.nn.task_model import TaskModel
from formwright.nn.transformer import Transformer

MULTI_LABEL = "multi_label_classification"  # transformers' name, in `problem_type`
_PREFIX = "transformer."
_TABLES = ("transformer.decoder.embedding.tokens.weight", "transformer.encoder.embedding.tokens.weight")


def load_folder(folder: str | Path) -> TaskModel | Transformer:
    """Load the model of one of our folders, ready for evaluation, without transformers."""
    return read_own(Path(folder)).model()


def read_own(folder: Path, head: bool = True) -> Imported:
    """Read one of our folders; without `head`, its transformer alone."""
    check_seal(folder)
    config = read_json(folder / CONFIG)
    if config.get("model_type") != MODEL_TYPE:
        raise IllegalInput(f"{folder} holds a model of type {config.get('model_type')!r}, not {MODEL_TYPE!r}")
    card, labels = _card(config, folder), label_names(config)
    spec = head_spec(config, labels) if head else None
    weights = read_weights(folder)
    decoder, encoder = _TABLES
    if card.share_embedding and encoder in weights:
        weights[decoder] = weights[encoder]  # saved once
    if spec is None:
        weights = {name.removeprefix(_PREFIX): part for name, part in weights.items() if name.startswith(_PREFIX)}
    return Imported(
        card=card,
        settings=_settings(config, folder),
        weights=_single(weights),
        head=spec,
        labels=labels if spec is not None and len(labels) == spec.labels else (),
        tokenizer_files=tokenizer_files(folder),
    ).checked(folder)


def _single(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: single(name, tensor) for name, tensor in weights.items()}


def _card(config: Mapping[str, Any], folder: Path) -> Card:
    try:
        return Card.from_json(config.get("card"))
    except IllegalDesign as error:
        raise IllegalDesign(error.faults, what=f"card in {folder / CONFIG}") from None


def _settings(config: Mapping[str, Any], folder: Path) -> Settings:
    defaults = Settings()
    found = {}
    for field in fields(Settings):
        default = getattr(defaults, field.name)
        found[field.name] = config.get(field.name, default)
        number = isinstance(default, float) and type(found[field.name]) is int
        if type(found[field.name]) is not type(default) and not number:
            raise IllegalInput(f"{field.name} in {folder / CONFIG} is {found[field.name]!r}; {default!r} is usual")
    return Settings(**found)


def head_spec(config: Mapping[str, Any], labels: tuple[str, ...]) -> HeadSpec | None:
    """Read from a configuration which head a model of ours has, if any."""
    architectures = config.get("architectures")
    name = str(architectures[0]) if isinstance(architectures, list) and architectures else ""
    task = task_of(name)
    if task is None:
        return None
    return HeadSpec(cast(Task, task), len(labels) or 2, multi_label=config.get("problem_type") == MULTI_LABEL)


def label_names(config: Mapping[str, Any]) -> tuple[str, ...]:
    """List the names of labels in order; none where the configuration does not number them from 0."""
    names = config.get("id2label")
    if not isinstance(names, dict):
        return ()
    by_number = {str(number): str(name) for number, name in names.items()}
    if set(by_number) != {str(number) for number in range(len(by_number))}:
        return ()
    return tuple(by_number[str(number)] for number in range(len(by_number)))
