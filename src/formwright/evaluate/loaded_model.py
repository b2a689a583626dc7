"""Load a delivered model in any form (Formwright, plain BERT, ONNX, OpenVINO) and predict with it."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
from torch import nn

from formwright.arch.card import Card
from formwright.arch.layers import PatchEmbedding
from formwright.core.errors import FormwrightError, IllegalInput
from formwright.nn.deploy.runtimes import FileModel, open_file
from formwright.nn.hf.checkpoint_files import CONFIG, WEIGHTS, read_json
from formwright.nn.hf.imported import Imported, head_spec, label_names
from formwright.nn.hf.load import from_hf
from formwright.nn.hf.model_folder import CARD
from formwright.nn.hf.side_files import LENGTH, read_evaluation
from formwright.nn.settings import Settings
from formwright.nn.task_model import HeadSpec
from formwright.tasks.pretrained_tokeniser import read_tokeniser
from formwright.tasks.rows import SpanRows, Splits, TextRows
from formwright.tasks.tables import WholeTable
from formwright.tasks.task import Kind, Task, first_rows
from formwright.tasks.tokeniser import Tokeniser
from formwright.train.judge import row_scores, span_answers
from formwright.train.prepare import Prepared, positions, prepare

_FILES = ("model.onnx", "model.xml")
_ENDLESS = 1 << 20  # tokens; tokenizers without a limit have a very large number


@dataclass(frozen=True, eq=False)
class LoadedModel:
    """A loaded model and the metadata of its folder.

    `imported` has its design, head and labels, and no weights for ONNX and OpenVINO files. `tokeniser` is None for
    images, whose `length` is 0. `evaluation` is the content of `evaluation.json`, if present.
    """

    folder: Path
    model: nn.Module
    imported: Imported
    tokeniser: Tokeniser | None
    length: int
    evaluation: Mapping[str, Any] | None

    @property
    def head(self) -> HeadSpec:
        """Return the head; a model without one is refused when it is loaded."""
        assert self.imported.head is not None
        return self.imported.head

    @property
    def kind(self) -> str:
        if isinstance(self.imported.card.stacks[0].embedding, PatchEmbedding):
            return "image-classification"
        if self.head.multi_label:
            return "multi-label-classification"
        one = self.head.task == "sequence-classification" and self.head.labels == 1
        return "regression" if one else self.head.task

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
    file = next((folder / name for name in _FILES if (folder / name).is_file()), None)
    imported = from_hf(folder) if file is None else _described(folder)
    if imported.head is None:
        raise IllegalInput(f"the model in {folder} has no task head: train it on a task first (`formwright train`)")
    model = imported.model() if file is None else FileModel(open_file(file, 1), imported.card)
    images = isinstance(imported.card.stacks[0].embedding, PatchEmbedding)
    tokeniser = None if images else read_tokeniser(folder)
    length = 0 if images else _length(folder, imported.card)
    return LoadedModel(folder, model.eval(), imported, tokeniser, length, read_evaluation(folder))


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
_METRICS = {
    "sequence-classification": "accuracy",
    "multi-label-classification": "micro-f1",
    "regression": "pearson",
    "span-extraction": "span-f1",
}


@dataclass(frozen=True)
class Prediction:
    """The answer to one row: the name of a label, a number, or a part of a text; numbers have no probability.

    Of a multi-label model it is the list of labels whose probability is above 0.5, and the probability of every label.
    """

    value: str | float | list[str]
    probability: float | dict[str, float] | None


def predict(loaded: LoadedModel, texts: Sequence[tuple[str, ...]]) -> list[Prediction]:
    """Answer each row: a text, a pair of texts, or a question and the text that may answer it."""
    if loaded.kind not in _METRICS:
        instead = "predict answers with labels, numbers and parts of texts; load it with transformers to generate text"
        if loaded.kind == "image-classification":
            call = f'pipeline("{loaded.kind}", FOLDER, trust_remote_code=True)'
            instead = f"predict reads text; for pictures use transformers: `{call}`"
        raise IllegalInput(f"the model in {loaded.folder} is for {loaded.kind}; {instead}")
    prepared = _prepared(loaded, texts)
    if loaded.kind == "span-extraction":
        unanswerable = bool((loaded.evaluation or {}).get("unanswerable"))
        return [Prediction(*found) for found in span_answers(loaded.model, prepared.validation, unanswerable)]
    scores = row_scores(loaded.model, prepared, prepared.validation).astype(np.float64)
    if loaded.kind == "regression":
        return [Prediction(float(row[0]), None) for row in scores]
    names = loaded.imported.labels or tuple(f"LABEL_{number}" for number in range(loaded.head.labels))
    if loaded.kind == "multi-label-classification":
        each = [dict(zip(names, row, strict=True)) for row in (1 / (1 + np.exp(-np.clip(scores, -500, 500)))).tolist()]
        return [Prediction([name for name, share in found.items() if share > 0.5], found) for found in each]
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    shares /= shares.sum(-1, keepdims=True)
    return [Prediction(names[int(row.argmax())], float(row.max())) for row in shares]


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


def _prepared(loaded: LoadedModel, texts: Sequence[tuple[str, ...]]) -> Prepared:
    """Encode rows as a task without labels."""
    rows: Any
    if loaded.kind == "span-extraction":
        pairs = [row for row in texts if len(row) == 2]
        if len(pairs) < len(texts):
            raise IllegalInput("a question and a text are two columns; name both with --text QUESTION,CONTEXT")
        questions, contexts = zip(*pairs, strict=True)
        rows = SpanRows(questions, contexts, ((),) * len(texts))
    else:
        rows = TextRows(tuple(texts), (0,) * len(texts))
    splits = Splits(first_rows(rows, 1), rows, None)
    kind = cast(Kind, loaded.kind)
    task = Task(str(loaded.folder), kind, _METRICS[kind], lambda: splits, labels=loaded.imported.labels)
    return prepare(task, loaded.imported.card, loaded.length, loaded.tokeniser)
