"""Load a delivered model in any form (Formwright, plain BERT, ONNX, OpenVINO) and predict with it."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import nn

from formwright.arch.card import Card
from formwright.arch.heads import HeadSpec
from formwright.core.errors import FormwrightError, IllegalInput
from formwright.nn.deploy.runtimes import FileModel, open_file
from formwright.nn.hf.checkpoint_files import CONFIG, WEIGHTS, read_json
from formwright.nn.hf.imported import Imported, head_spec, label_names
from formwright.nn.hf.load import from_hf
from formwright.nn.hf.model_folder import CARD
from formwright.nn.hf.side_files import LENGTH, read_evaluation
from formwright.nn.settings import Settings
from formwright.tasks.kind import KINDS, Kind
from formwright.tasks.preprocessor import Preprocessor
from formwright.tasks.rows import Splits
from formwright.tasks.tables import WholeTable
from formwright.tasks.task import Task, first_rows
from formwright.tasks.tokeniser import Tokeniser
from formwright.train.prepare import positions, prepare

_FILES = ("model.onnx", "model.xml")
_ENDLESS = 1 << 20  # tokens; tokenizers without a limit have a very large number


@dataclass(frozen=True, eq=False)
class LoadedModel:
    """A loaded model and the metadata of its folder.

    `imported` has its design, head and labels, and no weights for ONNX and OpenVINO files. `tokeniser` is
    what turns rows into arrays; images have `length` 0. `evaluation` is the content of `evaluation.json`, if present.
    """

    folder: Path
    model: nn.Module
    imported: Imported
    tokeniser: Tokeniser | Preprocessor
    length: int
    evaluation: Mapping[str, Any] | None
    kind: str

    @property
    def head(self) -> HeadSpec:
        """Return the head; a model without one is refused when it is loaded."""
        assert self.imported.head is not None
        return self.imported.head

    @property
    def digest(self) -> str:
        file = next(path for name in (*_FILES, WEIGHTS) if (path := self.folder / name).is_file())
        file = file.with_suffix(".bin") if file.suffix == ".xml" else file
        with file.open("rb") as content:
            return hashlib.file_digest(content, "sha256").hexdigest()


def load_model(folder: Path) -> LoadedModel:
    """Read a model from its folder; refuse one without a head, and folders that hold models in folders of their own."""
    if not folder.is_dir():
        raise IllegalInput(f"there is no folder {folder}; name the folder of a delivered model")
    inner = [folder / "model", *sorted((folder / "models").glob("*"))]
    models = [str(path) for path in inner if (path / CARD).is_file()]
    if models and not (folder / CARD).is_file():
        raise IllegalInput(f"{folder} is the folder of a run; its models are {', '.join(models)}")
    if not (folder / CONFIG).is_file():
        run = (folder / "run.json").is_file()
        what = f"delivered none yet: `formwright resume {folder}` ends its run" if run else f"has no {CONFIG}"
        raise IllegalInput(f"there is no model in {folder}, which {what}; name the folder of a delivered model")
    file = next((folder / name for name in _FILES if (folder / name).is_file()), None)
    imported = from_hf(folder) if file is None else _described(folder)
    if imported.head is None:
        raise IllegalInput(f"the model in {folder} has no task head: train it on a task first (`formwright train`)")
    model = imported.model() if file is None else FileModel(open_file(file, 1), imported.card)
    evaluation = read_evaluation(folder)
    kind = _kind(folder, imported.head, imported.card.stacks[0].embedding.TYPE, (evaluation or {}).get("kind"))
    tokeniser, length = kind.read_tokeniser(folder, imported.card), _length(folder, imported.card)
    return LoadedModel(folder, model.eval(), imported, tokeniser, length, evaluation, kind.name)


def _kind(folder: Path, head: HeadSpec, reads: str, recorded: str | None) -> Kind:
    """Return the kind of task that the folder of a model records, or else the one that design and head suggest."""
    fitting = [
        kind
        for kind in map(KINDS.get, KINDS.names())
        if (kind.reads, kind.head, kind.multi_label) == (reads, head.task, head.multi_label)
        and kind.outputs in (None, head.labels)
    ]
    if not fitting:
        raise IllegalInput(f"no kind of task reads {reads} and has a head for {head.task}: see {folder}")
    return max(fitting, key=lambda one: (one.name == recorded, one.outputs is not None, one.name == head.task))


def _described(folder: Path) -> Imported:
    """Read the metadata next to a runtime's file: the design, the head and the labels."""
    try:
        card = Card.loads((folder / CARD).read_bytes())
    except (OSError, FormwrightError) as error:
        raise IllegalInput(f"cannot read {folder / CARD}: {error}") from None
    config = read_json(folder / CONFIG)
    labels = label_names(config)
    return Imported(card, Settings(), {}, head_spec(config, labels), labels)


def _length(folder: Path, card: Card) -> int:
    """Return the maximum number of tokens in a row, as the folder says, limited by the design's positions."""
    tokenizer = folder / "tokenizer_config.json"
    said = [
        read_json(folder / CONFIG).get(LENGTH),
        read_json(tokenizer).get("model_max_length") if tokenizer.is_file() else None,
    ]
    lengths = [number for number in said if isinstance(number, int) and 0 < number < _ENDLESS]
    return min([positions(card), *lengths[:1]])


PREDICTION, PROBABILITY = "prediction", "probability"  # columns


@dataclass(frozen=True)
class Prediction:
    """The answer to one row: the name of a label, a number, or a part of a text; numbers have no probability.

    Of a multi-label model it is the list of labels whose probability is above 0.5, and the probability of every label.
    """

    value: str | float | list[str]
    probability: float | dict[str, float] | None


def predict(loaded: LoadedModel, texts: Sequence[Any]) -> list[Prediction]:
    """Answer each row: a text, a pair of texts, a question and the text that may answer it, or what its kind reads."""
    kind = KINDS.get(loaded.kind)
    if kind.predict is None or kind.unlabelled is None:
        raise IllegalInput(
            f"the model in {loaded.folder} is for {kind.name}, which predict does not answer; load it with "
            "transformers, as its README.md shows"
        )
    if kind.of_words and isinstance(loaded.model, FileModel):
        raise IllegalInput(
            f"{loaded.folder} is a file for another runtime, which writes no texts here; predict with the folder "
            "that it was exported from"
        )
    rows, design = kind.unlabelled(texts), loaded.imported.card
    if kind.check is not None and (reason := kind.check(rows, design.stacks[0].embedding)):
        raise IllegalInput(f"the model in {loaded.folder} cannot read these rows: {reason}")
    splits = Splits(first_rows(rows, 1), rows, None)
    names = loaded.imported.labels or tuple(f"LABEL_{number}" for number in range(loaded.head.labels))
    task = Task(str(loaded.folder), kind.name, kind.metrics[0], lambda: splits, labels=names)
    prepared = prepare(task, design, loaded.length, loaded.tokeniser)
    found = kind.predict(loaded.model, prepared, prepared.validation, loaded.evaluation or {})
    return [Prediction(*one) for one in found]


def text_columns(loaded: LoadedModel, given: Sequence[str] = ()) -> tuple[str, ...]:
    """Name the columns of text of a table: those that are given, or those that the model was trained on."""
    recorded: Any = (loaded.evaluation or {}).get("columns")
    columns = tuple(given) or (tuple(map(str, recorded)) if isinstance(recorded, list) else ())
    if not 1 <= len(columns) <= 2:
        raise IllegalInput("say which one or two columns hold the text: --text COLUMN or --text FIRST,SECOND")
    if recorded and len(recorded) != len(columns):
        learned = f"{len(recorded)} text column{'s' if len(recorded) > 1 else ''} ({', '.join(recorded)})"
        raise IllegalInput(f"the model was trained on {learned}; --text names {len(columns)}: {', '.join(columns)}")
    return columns


def input_columns(loaded: LoadedModel, given: Sequence[str] = ()) -> tuple[str, ...]:
    """Name the columns of a table that its kind needs to know: those of text, or those of labels and of series."""
    if KINDS.get(loaded.kind).has_tokens:
        return text_columns(loaded, given)
    if given:
        raise IllegalInput(f"the model in {loaded.folder} is for {loaded.kind}: it reads no columns of text")
    task = (loaded.evaluation or {}).get("task") or {}
    return str(task.get("label") or "label"), str(task.get("series") or "")


def predict_table(loaded: LoadedModel, table: WholeTable) -> tuple[list[dict[str, Any]], list[str]]:
    """Answer each row of a table; give the rows with the answers, and the names of their columns."""
    taken = [name for name in (PREDICTION, PROBABILITY) if name in table.names]
    if taken:
        raise IllegalInput(f"the table has a column called {taken[0]!r} already; rename it first")
    found = predict(loaded, table.texts)
    added = [PREDICTION, *([PROBABILITY] if any(one.probability is not None for one in found) else [])]
    values = [dict(zip(added, (one.value, one.probability), strict=False)) for one in found]
    rows = [{**row, **more} for row, more in zip(table.rows, values, strict=True)]
    return rows, [*table.names, *added]
