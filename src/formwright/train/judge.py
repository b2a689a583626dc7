"""Judge a trained model by the metrics of its task."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from formwright.core.rng import derive
from formwright.nn.task_model import TaskModel
from formwright.tasks.bootstrap import Tables
from formwright.tasks.metrics import WRITTEN, metric
from formwright.tasks.rows import TranslationRows
from formwright.tasks.span_decode import answers_with_probability
from formwright.tasks.spans import SpanRows
from formwright.train.batch import Batch
from formwright.train.loop import Diverged, enough_memory, scores_of
from formwright.train.losses import IGNORED
from formwright.train.masking import Masking, masked
from formwright.train.prepare import Part, Prepared
from formwright.train.streams import in_order, next_tokens, pictures, sentences, translations
from formwright.train.written import written

_SIZE = 64  # rows judged at once
ONE_ANSWER = ("sequence-classification", "image-classification", "regression")  # kinds of tasks


Answers = Mapping[str, tuple[Any, Any]]  # by metric: what was answered to each row, and what is right
Maker = Callable[[Any, NDArray[np.int64]], Batch]


@dataclass(frozen=True, eq=False)
class Judged:
    """The scores of a model on some rows by metric, and what each row contributes to them."""

    metrics: dict[str, float]
    tables: Tables


def judge(model: nn.Module, prepared: Prepared, part: Part) -> dict[str, float]:
    """Score a model on some rows of its task, by every metric of the task; the model is left ready for evaluation."""
    return scored(_answered(model, prepared, part))


def judged(model: nn.Module, prepared: Prepared, part: Part) -> Judged:
    """Score a model as `judge` does, and keep what each row contributes."""
    found = _answered(model, prepared, part)
    return Judged(scored(found), tables_of(found))


def scored(found: Answers) -> dict[str, float]:
    """Compute the metric of each pair of answers and truth."""
    return {name: metric(name).compute(*pair) for name, pair in found.items()}


def tables_of(found: Answers) -> Tables:
    """Give what each row contributes to each metric."""
    return {name: metric(name).by_row.table(*pair) for name, pair in found.items()}


def _answered(model: nn.Module, prepared: Prepared, part: Part) -> Answers:
    model.eval()
    with torch.inference_mode(), enough_memory(f"while the model was judged, {_SIZE} rows at once"):
        return _JUDGES[prepared.task.kind](model, prepared, part)


def answers(model: nn.Module, prepared: Prepared, part: Part, rows: NDArray[np.int64]) -> NDArray[Any]:
    """Give a model's answer to each of some rows, in their order: a label, or the number of a regression.

    Only tasks of `ONE_ANSWER` have such. The model is left ready for evaluation.
    """
    model.eval()
    found = np.empty(len(part.examples), np.float32 if prepared.task.kind == "regression" else np.int64)
    with torch.inference_mode(), enough_memory(f"while the model was judged, {_SIZE} rows at once"):
        for some, scores, _ in _answers(model, part, _maker(prepared), rows):
            found[some] = _best(prepared, scores)
    return found[rows]


def row_scores(model: nn.Module, prepared: Prepared, part: Part) -> NDArray[np.float32]:
    """Give the scores of each row of a task of `ONE_ANSWER`: (rows, labels), or (rows, 1) for a regression."""
    model.eval()
    found: NDArray[Any] = np.empty(len(part.examples), object)
    with torch.inference_mode(), enough_memory(f"while the model was run, {_SIZE} rows at once"):
        for rows, scores, _ in _answers(model, part, _maker(prepared)):
            found[rows] = list(scores.cpu().numpy())
    return np.stack(list(found))


def span_answers(model: nn.Module, part: Part, unanswerable: bool) -> list[tuple[str, float]]:
    """Give the answer to each question, and its probability among all parts of the text."""
    model.eval()
    with torch.inference_mode(), enough_memory(f"while the model was run, {_SIZE} rows at once"):
        return _span_texts(model, part, unanswerable)


def batch_of(prepared: Prepared, part: Part, rows: NDArray[np.int64]) -> Batch:
    """Make a batch of some rows of a task whose model reads sentences or images."""
    return _maker(prepared)(part.examples, rows)


def truths(part: Part) -> NDArray[Any]:
    """Give the right answer to each row of a task that has labels: a class, a score, or 0 and 1 for each label."""
    labels = part.examples.labels
    assert labels is not None
    return labels


def compared(prepared: Prepared, found: NDArray[Any], truth: NDArray[Any]) -> dict[str, float]:
    """Compare answers with what is right, by every metric of the task."""
    return scored(dict.fromkeys(prepared.task.metrics, (found, truth)))


def _answers(
    model: nn.Module, part: Part, make: Maker, among: NDArray[np.int64] | None = None
) -> Iterator[tuple[NDArray[np.int64], Tensor, Batch]]:
    device = next(model.parameters()).device
    for rows in in_order(part.examples, _SIZE, among):
        batch = make(part.examples, rows).to(device)
        # in single precision on every device, as the delivered folder is read elsewhere
        scores = scores_of(model, batch).float()
        if not scores.isfinite().all():  # the best of these would be an answer like any other
            raise Diverged("the trained model answers with what is no number; lower the learning rate")
        yield rows, scores, batch


def _maker(prepared: Prepared) -> Maker:
    return pictures if prepared.task.kind == "image-classification" else sentences


def _best(prepared: Prepared, scores: Tensor) -> NDArray[Any]:
    best: NDArray[Any] = (scores[:, 0] if prepared.task.kind == "regression" else scores.argmax(-1)).cpu().numpy()
    return best


def _one_each(model: nn.Module, prepared: Prepared, part: Part) -> Answers:
    found = answers(model, prepared, part, np.arange(len(part.examples)))
    return {name: (found, truths(part)) for name in prepared.task.metrics}


def _several_labels(model: nn.Module, prepared: Prepared, part: Part) -> Answers:
    """Answer with the labels whose sigmoid is above 0.5: those whose score is above 0."""
    truth = truths(part)
    found = np.empty(truth.shape, np.bool_)
    for rows, scores, _ in _answers(model, part, sentences):
        found[rows] = (scores > 0).cpu().numpy()
    return dict.fromkeys(prepared.task.metrics, (found, truth))


def _words(model: nn.Module, prepared: Prepared, part: Part) -> Answers:
    means, tokens = np.zeros(len(part.examples)), np.zeros(len(part.examples))
    for rows, found, batch in _answers(model, part, words_maker(prepared)):
        losses = F.cross_entropy(found.flatten(0, -2), batch.labels.flatten(), ignore_index=IGNORED, reduction="none")
        means[rows], tokens[rows] = mean_by_row(batch, losses.cpu().numpy())
    return {name: (means, tokens) for name in prepared.task.metrics if name not in WRITTEN}


def mean_by_row(batch: Batch, losses: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Give the mean loss of each row's tokens, and how many tokens count; `losses` are in the order of the labels."""
    where = torch.nonzero(
        torch.ones_like(batch.labels, dtype=torch.bool) if batch.positions is None else batch.positions
    )
    row, counts = where[:, 0].cpu().numpy(), (batch.labels.flatten() != IGNORED).cpu().numpy()
    tokens = np.bincount(row[counts], minlength=len(batch.inputs)).astype(np.float64)
    sums = np.bincount(row[counts], losses[counts].astype(np.float64), minlength=len(batch.inputs))
    return sums / np.maximum(tokens, 1), tokens


def words_maker(prepared: Prepared) -> Maker:
    """Give the function that makes the batches on which a model of words is judged."""
    makers: dict[str, Maker] = {"causal-lm": next_tokens, "seq2seq-lm": translations}
    return makers.get(prepared.task.kind) or _hidden_words(prepared)


def _translations(model: nn.Module, prepared: Prepared, part: Part) -> Answers:
    found, wanted = _words(model, prepared, part), [name for name in prepared.task.metrics if name in WRITTEN]
    if not wanted:
        return found
    texts, rows = written(cast(TaskModel, model), prepared, part), cast(TranslationRows, part.rows)
    return {**found, **dict.fromkeys(wanted, (texts, rows.targets))}


def _hidden_words(prepared: Prepared) -> Maker:
    masking = Masking.of(prepared.text_tokeniser)
    # the same rows are hidden alike whenever they are judged, so that scores of different models compare
    return lambda encoded, rows: masked(encoded, rows, masking, derive(0, "judge", int(rows[0])))


def _spans(model: nn.Module, prepared: Prepared, part: Part) -> Answers:
    assert isinstance(part.rows, SpanRows)
    texts = [text for text, _ in _span_texts(model, part, not part.rows.answerable)]
    return dict.fromkeys(prepared.task.metrics, (texts, part.rows.texts))


def _span_texts(model: nn.Module, part: Part, unanswerable: bool) -> list[tuple[str, float]]:
    assert part.windows is not None
    assert isinstance(part.rows, SpanRows)
    found = np.empty(len(part.windows), object)
    for rows, scores, _ in _answers(model, part, sentences):
        found[rows] = list(scores.cpu().numpy())  # (tokens, 2) each
    starts, ends = [scores[:, 0] for scores in found], [scores[:, 1] for scores in found]
    return answers_with_probability(starts, ends, part.windows, part.rows, unanswerable)


_JUDGES: dict[str, Callable[[nn.Module, Prepared, Part], Answers]] = {
    "sequence-classification": _one_each,
    "image-classification": _one_each,
    "multi-label-classification": _several_labels,
    "regression": _one_each,
    "masked-lm": _words,
    "causal-lm": _words,
    "seq2seq-lm": _translations,
    "span-extraction": _spans,
}
