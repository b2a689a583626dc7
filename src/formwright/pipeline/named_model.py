"""Models by name: the folder of one, or a design with fresh weights, with or without a head."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from formwright.core.errors import IllegalInput
from formwright.nn.build import build
from formwright.nn.hf.imported import Imported
from formwright.nn.hf.load import from_hf
from formwright.nn.hf.side_files import read_evaluation
from formwright.nn.task_model import HeadSpec, TaskModel
from formwright.nn.transformer import Transformer
from formwright.pipeline.designs import NamedCard, find
from formwright.pipeline.run_folder import refuse_run_folder


@dataclass(frozen=True, eq=False)
class NamedModel:
    """A model, the names of its labels, the files of its tokenizer, and which of its weights are `fresh`.

    `evaluation` is what its folder says of how it was evaluated.
    """

    model: TaskModel | Transformer
    name: str
    labels: tuple[str, ...] = ()
    tokenizer_files: tuple[Path, ...] = ()
    fresh: str | None = None
    evaluation: dict[str, Any] | None = None


def read_model(source: str, head: HeadSpec | None = None, labels: tuple[str, ...] = (), seed: int = 0) -> NamedModel:
    """Read a model from its folder, or build a card with fresh weights; one without a head gets the `head`."""
    if os.path.isdir(source):  # says no to a name that is too long
        return _from_folder(Path(source), head, labels, seed)
    found = find(source)
    if not isinstance(found, NamedCard):
        raise IllegalInput(f"{source} is a search space; name one of its designs, or a published card")
    return NamedModel(build(found.card, head=head, seed=seed), found.name, labels, fresh="all weights")


def _from_folder(folder: Path, head: HeadSpec | None, labels: tuple[str, ...], seed: int) -> NamedModel:
    refuse_run_folder(folder)
    imported = from_hf(folder)
    if head is None or head == imported.head:
        known, evaluation = labels or imported.labels, read_evaluation(folder)
        return NamedModel(imported.model(), folder.name, known, imported.tokenizer_files, evaluation=evaluation)
    if imported.head is not None:
        raise IllegalInput(f"{folder} has a head for {imported.head.task} with {imported.head.labels} labels already")
    model = _with_head(imported, head, seed)
    return NamedModel(model, folder.name, labels, imported.tokenizer_files, "the head's weights")


def _with_head(imported: Imported, head: HeadSpec, seed: int) -> TaskModel | Transformer:
    model = build(imported.card, imported.settings, head, seed)
    names = {f"transformer.{name}": tensor for name, tensor in imported.weights.items()}
    model.load_state_dict(names, strict=False)  # all but the head
    return model.eval()
