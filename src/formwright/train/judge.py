"""Judge a trained model by the metrics of its task."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from formwright.core.rng import derive
from formwright.tasks.metrics import metric
from formwright.tasks.span_decode import decode_spans
from formwright.tasks.spans import SpanRows
from formwright.train.batch import Batch
from formwright.train.device import precision
from formwright.train.loop import Diverged, enough_memory, scores_of
from formwright.train.losses import IGNORED
from formwright.train.masking import Masking, masked
from formwright.train.prepare import Part, Prepared
from formwright.train.streams import in_order, next_tokens, pictures, sentences, translations

_SIZE = 64  # rows judged at once


def judge(model: nn.Module, prepared: Prepared, part: Part) -> dict[str, float]:
    """Score a model on some rows of its task, by every metric of the task; the model is left ready for evaluation."""
    model.eval()
    with torch.inference_mode(), enough_memory(f"while the model was judged, {_SIZE} rows at once"):
        return _JUDGES[prepared.task.kind](model, prepared, part)


def _answers(
    model: nn.Module, part: Part, make: Callable[[Any, NDArray[np.int64]], Batch]
) -> Iterator[tuple[NDArray[np.int64], Tensor, Batch]]:
    device = next(model.parameters()).device
    for rows in in_order(part.examples, _SIZE):
        batch = make(part.examples, rows).to(device)
        with precision(device):
            scores = scores_of(model, batch).float()
        if not scores.isfinite().all():  # the best of these would be an answer like any other
            raise Diverged("the trained model answers with what is no number; lower the learning rate")
        yield rows, scores, batch


def _by_metrics(names: Iterable[str], found: NDArray[Any], truth: NDArray[Any]) -> dict[str, float]:
    return {name: metric(name).compute(found, truth) for name in names}


def _labels(model: nn.Module, prepared: Prepared, part: Part) -> dict[str, float]:
    make = pictures if prepared.task.kind == "image-classification" else sentences
    answers = [(scores.argmax(-1).cpu(), batch.labels.cpu()) for _, scores, batch in _answers(model, part, make)]
    return _by_metrics(prepared.task.metrics, *(torch.cat(side).numpy() for side in zip(*answers, strict=True)))


def _numbers(model: nn.Module, prepared: Prepared, part: Part) -> dict[str, float]:
    answers = [(scores[:, 0].cpu(), batch.labels.cpu()) for _, scores, batch in _answers(model, part, sentences)]
    return _by_metrics(prepared.task.metrics, *(torch.cat(side).numpy() for side in zip(*answers, strict=True)))


def _words(model: nn.Module, prepared: Prepared, part: Part) -> dict[str, float]:
    makers = {"causal-lm": next_tokens, "seq2seq-lm": translations}
    make = makers.get(prepared.task.kind) or _hidden_words(prepared)
    losses, weights = [], []
    for _, scores, batch in _answers(model, part, make):
        wanted = batch.labels.flatten()
        losses.append(float(F.cross_entropy(scores.flatten(0, -2), wanted, ignore_index=IGNORED)))
        weights.append(int((wanted != IGNORED).sum()))
    return _by_metrics(prepared.task.metrics, np.array(losses), np.array(weights))


def _hidden_words(prepared: Prepared) -> Callable[[Any, NDArray[np.int64]], Batch]:
    masking = Masking.of(prepared.text_tokeniser)
    # the same rows are hidden alike whenever they are judged, so that scores of different models compare
    return lambda encoded, rows: masked(encoded, rows, masking, derive(0, "judge", int(rows[0])))


def _spans(model: nn.Module, prepared: Prepared, part: Part) -> dict[str, float]:
    assert part.windows is not None
    assert isinstance(part.rows, SpanRows)
    found = np.empty(len(part.windows), object)
    for rows, scores, _ in _answers(model, part, sentences):
        found[rows] = list(scores.cpu().numpy())  # (tokens, 2) each
    starts, ends = [scores[:, 0] for scores in found], [scores[:, 1] for scores in found]
    unanswerable = not part.rows.answerable
    answers = decode_spans(starts, ends, part.windows, part.rows, unanswerable)
    return {name: metric(name).compute(answers, part.rows.texts) for name in prepared.task.metrics}


_JUDGES: dict[str, Callable[[nn.Module, Prepared, Part], dict[str, float]]] = {
    "sequence-classification": _labels,
    "image-classification": _labels,
    "regression": _numbers,
    "masked-lm": _words,
    "causal-lm": _words,
    "seq2seq-lm": _words,
    "span-extraction": _spans,
}
