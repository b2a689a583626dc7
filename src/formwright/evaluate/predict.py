"""Answer rows of text with a delivered model."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from formwright.core.errors import IllegalInput
from formwright.evaluate.loaded_model import LoadedModel
from formwright.tasks.rows import Splits, TextRows
from formwright.tasks.shorten import first_rows
from formwright.tasks.spans import SpanRows
from formwright.tasks.task import Kind, Task
from formwright.train.judge import row_scores, span_answers
from formwright.train.prepare import Prepared, prepare

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
        raise IllegalInput(f"the model in {loaded.folder} is for {loaded.kind}; {_INSTEAD.get(loaded.kind, _GENERATE)}")
    prepared = _prepared(loaded, texts)
    if loaded.kind == "span-extraction":
        unanswerable = bool((loaded.evaluation or {}).get("unanswerable"))
        return [Prediction(*found) for found in span_answers(loaded.model, prepared.validation, unanswerable)]
    scores = row_scores(loaded.model, prepared, prepared.validation).astype(np.float64)
    if loaded.kind == "regression":
        return [Prediction(float(row[0]), None) for row in scores]
    names = loaded.imported.labels or tuple(f"LABEL_{number}" for number in range(loaded.head.labels))
    if loaded.kind == "multi-label-classification":
        return [_several(names, row) for row in 1 / (1 + np.exp(-np.clip(scores, -500, 500)))]
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    shares /= shares.sum(-1, keepdims=True)
    return [Prediction(names[int(row.argmax())], float(row.max())) for row in shares]


def _several(names: Sequence[str], shares: NDArray[np.float64]) -> Prediction:
    found = dict(zip(names, shares.tolist(), strict=True))
    return Prediction([name for name, share in found.items() if share > 0.5], found)


_GENERATE = "predict answers with labels, numbers and parts of texts; load it with transformers to generate text"
_INSTEAD = {
    "image-classification": "predict reads text; for pictures use transformers: "
    '`pipeline("image-classification", FOLDER, trust_remote_code=True)`'
}


def _prepared(loaded: LoadedModel, texts: Sequence[tuple[str, ...]]) -> Prepared:
    """Encode rows as those of a task that has no answers."""
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
