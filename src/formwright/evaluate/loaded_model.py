"""A delivered model, read from its folder in whatever form: of this package, plain BERT, ONNX or OpenVINO."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import nn

from formwright.arch.card import Card
from formwright.arch.layers import PatchEmbedding
from formwright.core.errors import FormwrightError, IllegalInput
from formwright.nn.deploy.file_model import FileModel
from formwright.nn.deploy.runtimes import open_file
from formwright.nn.heads import HeadSpec
from formwright.nn.hf.beside import LENGTH, read_evaluation
from formwright.nn.hf.files import CONFIG, WEIGHTS, read_json
from formwright.nn.hf.folders import CARD
from formwright.nn.hf.imported import Imported
from formwright.nn.hf.load import from_hf
from formwright.nn.hf.own import head_spec, label_names
from formwright.nn.settings import Settings
from formwright.tasks.pretrained_tokeniser import read_tokeniser
from formwright.tasks.tokeniser import Tokeniser
from formwright.train.prepare import positions

_FILES = ("model.onnx", "model.xml")
_ENDLESS = 1 << 20  # tokens; some tokenizers have no limit, and say so with a very large number


@dataclass(frozen=True, eq=False)
class LoadedModel:
    """A model that runs, and what its folder says of it.

    `imported` has its design, head and labels, and no weights where a runtime's file holds these. `tokeniser` is None
    for images, whose `length` is 0. `evaluation` is what stands in `evaluation.json`, if that is there.
    """

    folder: Path
    model: nn.Module
    imported: Imported
    tokeniser: Tokeniser | None
    length: int
    evaluation: Mapping[str, Any] | None

    @property
    def head(self) -> HeadSpec:
        """Give the head; a model without one is refused when it is loaded."""
        assert self.imported.head is not None
        return self.imported.head

    @property
    def kind(self) -> str:
        """Name the kind of tasks that the model answers."""
        if isinstance(self.imported.card.stacks[0].embedding, PatchEmbedding):
            return "image-classification"
        if self.head.multi_label:
            return "multi-label-classification"
        one = self.head.task == "sequence-classification" and self.head.labels == 1
        return "regression" if one else self.head.task

    @property
    def digest(self) -> str:
        """Tell the weights by the content of their file."""
        file = next(path for name in (*_FILES, WEIGHTS) if (path := self.folder / name).is_file())
        file = file.with_suffix(".bin") if file.suffix == ".xml" else file
        with file.open("rb") as content:
            return hashlib.file_digest(content, "sha256").hexdigest()


def load_model(folder: Path) -> LoadedModel:
    """Read a model from its folder; refuse one without a head, and folders that hold models in folders of their own."""
    _refuse_outer(folder)
    file = next((folder / name for name in _FILES if (folder / name).is_file()), None)
    imported = from_hf(folder) if file is None else _described(folder)
    if imported.head is None:
        raise IllegalInput(f"the model in {folder} has no task head: train it on a task first (`formwright train`)")
    model = imported.model() if file is None else FileModel(open_file(file, 1), imported.card)
    images = isinstance(imported.card.stacks[0].embedding, PatchEmbedding)
    tokeniser = None if images else read_tokeniser(folder)
    length = 0 if images else _length(folder, imported.card)
    return LoadedModel(folder, model.eval(), imported, tokeniser, length, read_evaluation(folder))


def _refuse_outer(folder: Path) -> None:
    if not folder.is_dir():
        raise IllegalInput(f"there is no folder {folder}; name the folder of a delivered model")
    inner = [folder / "model", *sorted((folder / "models").glob("*"))]
    models = [str(path) for path in inner if (path / CARD).is_file()]
    if models and not (folder / CARD).is_file():
        raise IllegalInput(f"{folder} is the folder of a run; its models are {', '.join(models)}")


def _described(folder: Path) -> Imported:
    """Read what stands beside a runtime's file: the design, the head and the labels."""
    try:
        card = Card.loads((folder / CARD).read_bytes())
    except (OSError, FormwrightError) as error:
        raise IllegalInput(f"cannot read {folder / CARD}: {error}") from None
    config = read_json(folder / CONFIG)
    labels = label_names(config)
    return Imported(card, Settings(), {}, head_spec(config, labels), labels)


def _length(folder: Path, card: Card) -> int:
    """Give the maximum number of tokens in a row, as the folder says it, and never more than the design reads."""
    tokenizer = folder / "tokenizer_config.json"
    said = [
        read_json(folder / CONFIG).get(LENGTH),
        read_json(tokenizer).get("model_max_length") if tokenizer.is_file() else None,
    ]
    lengths = [number for number in said if isinstance(number, int) and 0 < number < _ENDLESS]
    return min([positions(card), *lengths[:1]])
