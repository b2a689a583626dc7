"""What a model says of rows without answers: for each row a prediction, and its probability."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from formwright.nn.generate import generate
from formwright.nn.task_model import TaskModel
from formwright.train.judge import generated_texts, generation_settings, row_scores, span_answers
from formwright.train.prepare import Prepared, PreparedRows

Predictions = list[tuple[Any, Any]]
Evaluation = Mapping[str, Any]  # what the folder of a model records


def classes(model: nn.Module, prepared: Prepared, part: PreparedRows, _: Evaluation) -> Predictions:
    """Predict the name of a class."""
    names, shares = prepared.task.labels, softmax(_stacked(model, prepared, part))
    return [(names[int(row.argmax())], float(row.max())) for row in shares]


def several_labels(model: nn.Module, prepared: Prepared, part: PreparedRows, _: Evaluation) -> Predictions:
    """Predict the list of labels whose probability is above 0.5, with the probability of every label."""
    scores = np.clip(_stacked(model, prepared, part), -500, 500)
    each = [dict(zip(prepared.task.labels, row, strict=True)) for row in (1 / (1 + np.exp(-scores))).tolist()]
    return [([name for name, share in found.items() if share > 0.5], found) for found in each]


def numbers(model: nn.Module, prepared: Prepared, part: PreparedRows, _: Evaluation) -> Predictions:
    """Predict a number, which has no probability."""
    return [(float(row[0]), None) for row in _stacked(model, prepared, part)]


def spans(model: nn.Module, prepared: Prepared, part: PreparedRows, evaluation: Evaluation) -> Predictions:
    """Predict a part of a text; none where the model learned that questions may have no answer."""
    return list(span_answers(model, prepared, part, bool(evaluation.get("unanswerable"))))


def translations(model: nn.Module, prepared: Prepared, part: PreparedRows, evaluation: Evaluation) -> Predictions:
    """Predict a text in the other language, with as many beams as the model was judged with."""
    beams = replace(prepared, beams=int(evaluation.get("beams") or 1))
    return [(text, None) for text in generated_texts(cast(TaskModel, model), beams, part)]


def continuations(model: nn.Module, prepared: Prepared, part: PreparedRows, _: Evaluation) -> Predictions:
    """Predict what follows a text: the likeliest token at a time, up to the model's length."""
    tokeniser, found, device = prepared.text_tokeniser, list[tuple[Any, Any]](), next(model.parameters()).device
    for ids in tokeniser.encode(part.rows.texts):
        read = [tokeniser.special.begin, *ids][-prepared.length // 2 :]  # half of the length is left to write
        settings = generation_settings(tokeniser, max(prepared.length - len(read), 1))
        written = generate(cast(TaskModel, model), torch.tensor([read], device=device), None, settings)
        found.append((tokeniser.decode(written[0]), None))
    return found


def softmax(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Turn the last axis of scores into probabilities."""
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    found: NDArray[np.float64] = shares / shares.sum(-1, keepdims=True)
    return found


def _stacked(model: nn.Module, prepared: Prepared, part: PreparedRows) -> NDArray[np.float64]:
    return np.stack(row_scores(model, prepared, part)).astype(np.float64)
