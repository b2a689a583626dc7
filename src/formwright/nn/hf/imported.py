"""A model read from files: its card, its settings and its weights; and how our own folders are read."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from formwright.arch.card import Card
from formwright.arch.embeddings import TokenEmbedding
from formwright.arch.heads import HeadSpec
from formwright.core.errors import IllegalDesign, IllegalInput
from formwright.nn.build import skeleton
from formwright.nn.hf.checkpoint_files import CONFIG, TOKENIZER_FILES, read_json, read_weights, single
from formwright.nn.hf.config_fields import MODEL_TYPE, task_of
from formwright.nn.hf.model_folder import verify_checksums
from formwright.nn.settings import Settings
from formwright.nn.task_model import TaskModel
from formwright.nn.transformer import Transformer

_TABLE = "encoder.embedding.tokens.weight"


@dataclass(frozen=True)
class Imported:
    """A model from elsewhere.

    `weights` has the names of a `TaskModel` where there is a head, and those of a `Transformer` otherwise. `labels` are
    the names of a classifier's labels in order, empty where there are none. `dropped` lists tensors of the checkpoint
    that the design has no place for, such as heads of pretraining.
    """

    card: Card
    settings: Settings
    weights: Mapping[str, Tensor]
    head: HeadSpec | None = None
    labels: tuple[str, ...] = ()
    tokenizer_files: tuple[Path, ...] = ()
    dropped: tuple[str, ...] = ()

    def model(self) -> TaskModel | Transformer:
        """Build the model in plain torch, ready for evaluation; it shares its memory with `weights`."""
        model = skeleton(self.card, self.settings, self.head)
        model.load_state_dict(dict(self.weights), assign=True)
        return model.eval()

    def with_room(self, tokens: int) -> "Imported":
        """Return the model whose token table has at least this size; new tokens start as the mean of the others."""
        stack = self.card.encoder
        if stack is None or not isinstance(stack.embedding, TokenEmbedding) or self.card.decoder is not None:
            raise IllegalInput(f"tokens can be added to encoders of text, not to a {self.card.family} design")
        more = tokens - stack.embedding.vocabulary
        if more <= 0:
            return self
        card = replace(self.card, encoder=replace(stack, embedding=replace(stack.embedding, vocabulary=tokens)))
        weights = {
            name: torch.cat((tensor, tensor.mean(0, keepdim=True).expand(more, *tensor.shape[1:])))
            if name.endswith((_TABLE, "head.bias"))
            else tensor
            for name, tensor in self.weights.items()
        }
        return replace(self, card=card, weights=weights)

    def checked(self, folder: Path) -> "Imported":
        """Return itself; raise if the tensors of the checkpoint in `folder` do not fit the card."""
        empty = skeleton(self.card, self.settings, self.head).state_dict()
        wanted = {name: tuple(tensor.shape) for name, tensor in empty.items()}
        found = {name: tuple(tensor.shape) for name, tensor in self.weights.items()}
        wrong = [name for name in wanted if found.get(name) != wanted[name]] + sorted(found.keys() - wanted.keys())
        if wrong:
            first = wrong[0]
            raise IllegalInput(
                f"the weights in {folder} do not fit its configuration: {len(wrong)} tensors are wrong, the first "
                f"being {first}, which is {found.get(first, 'absent')} instead of {wanted.get(first, 'absent')}"
            )
        return self


def tokenizer_files(folder: Path) -> tuple[Path, ...]:
    return tuple(folder / name for name in TOKENIZER_FILES if (folder / name).is_file())


MULTI_LABEL = "multi_label_classification"  # transformers' name, in `problem_type`
_PREFIX = "transformer."
_TABLES = ("transformer.decoder.embedding.tokens.weight", "transformer.encoder.embedding.tokens.weight")


def load_folder(folder: str | Path) -> TaskModel | Transformer:
    """Load the model of one of our folders, ready for evaluation, without transformers."""
    return read_own(Path(folder)).model()


def read_own(folder: Path, head: bool = True) -> Imported:
    """Read one of our folders; without `head`, its transformer alone."""
    verify_checksums(folder)
    config = read_json(folder / CONFIG)
    if config.get("model_type") != MODEL_TYPE:
        raise IllegalInput(f"{folder} holds a model of type {config.get('model_type')!r}, not {MODEL_TYPE!r}")
    try:
        card = Card.from_json(config.get("card"))
    except IllegalDesign as error:
        raise IllegalDesign(error.faults, what=f"card in {folder / CONFIG}") from None
    labels = label_names(config)
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
        weights={name: single(name, tensor) for name, tensor in weights.items()},
        head=spec,
        labels=labels if spec is not None and len(labels) == spec.labels else (),
        tokenizer_files=tokenizer_files(folder),
    ).checked(folder)


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
    return HeadSpec(task, len(labels) or 2, multi_label=config.get("problem_type") == MULTI_LABEL)


def label_names(config: Mapping[str, Any]) -> tuple[str, ...]:
    """List the names of labels in order; none where the configuration does not number them from 0."""
    names = config.get("id2label")
    by_number = {str(number): str(name) for number, name in names.items()} if isinstance(names, dict) else {}
    numbers = [str(number) for number in range(len(by_number))]
    return tuple(by_number[number] for number in numbers) if set(by_number) == set(numbers) else ()
