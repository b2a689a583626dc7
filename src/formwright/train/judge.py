"""Score a trained model by the metrics of its task, and the baseline that ignores the input.

A score means little without its baseline: the majority class, the mean, or token frequencies of the training rows,
scored on the rows that the model is scored on.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from formwright.core.errors import IllegalInput
from formwright.core.rng import derive
from formwright.nn.generate import GenerationSettings, generate
from formwright.nn.task_model import TaskModel
from formwright.tasks.bootstrap import Tables
from formwright.tasks.encode import Encoded
from formwright.tasks.metrics import WRITTEN, best_constant, metric
from formwright.tasks.rows import SpanRows, TranslationRows
from formwright.tasks.span_windows import answers_with_probability
from formwright.tasks.tokeniser import Tokeniser
from formwright.train.loop import Diverged, enough_memory, scores_of
from formwright.train.prepare import Prepared, PreparedRows
from formwright.train.streams import (
    IGNORED,
    Batch,
    MakeBatch,
    Masking,
    in_order,
    maker_of,
    masked,
    sentences,
    translations,
)

_SIZE = 64  # rows of one batch
ONE_ANSWER = ("sequence-classification", "image-classification", "regression")  # kinds of tasks


def generation_settings(tokeniser: Tokeniser, length: int, beams: int = 1) -> GenerationSettings:
    """Return how texts of a tokeniser are generated; one beam is greedy decoding."""
    special = tokeniser.special
    return GenerationSettings(special.begin, special.separator, special.pad or 0, length, beams)


def with_beams(prepared: Prepared, beams: int) -> Prepared:
    """Set the number of beams of a task; raise where its metrics need no generated text."""
    if beams == 1:
        return prepared
    if not any(name in WRITTEN for name in prepared.task.metrics):
        raise IllegalInput(f"no metric of {prepared.task.name} needs generated text; leave out --beams")
    return replace(prepared, beams=beams)


def generated_texts(model: TaskModel, prepared: Prepared, part: PreparedRows) -> list[str]:
    """Translate rows of a task with its number of beams, and return the texts in the order of the rows."""
    tokeniser, device = prepared.text_tokeniser, next(model.parameters()).device
    settings = generation_settings(tokeniser, prepared.length, prepared.beams)
    texts = np.empty(len(part.examples), object)
    for rows in in_order(part.examples, _SIZE):
        batch = translations(part.examples, rows).to(device)  # type: ignore[arg-type]
        found = generate(model, batch.inputs, batch.mask, settings)
        texts[rows] = [tokeniser.decode(tokens) for tokens in found]
    return list(texts)


Answers = Mapping[str, tuple[Any, Any]]  # by metric: predictions and truth


@dataclass(frozen=True, eq=False)
class Judged:
    """Scores on some rows by metric, and the contribution of each row; `answer` describes a baseline."""

    metrics: dict[str, float]
    tables: Tables
    answer: str = ""


def judge(model: nn.Module, prepared: Prepared, part: PreparedRows) -> dict[str, float]:
    """Score a model on some rows by every metric of the task; the model is left in evaluation mode."""
    return _scored(_answered(model, prepared, part))


def judged(model: nn.Module, prepared: Prepared, part: PreparedRows) -> Judged:
    """Score a model as `judge` does, and keep the contribution of each row."""
    return _judged(_answered(model, prepared, part))


def _scored(found: Answers) -> dict[str, float]:
    return {name: metric(name).compute(*pair) for name, pair in found.items()}


def _judged(found: Answers, answer: str = "") -> Judged:
    return Judged(_scored(found), {name: metric(name).table(*pair) for name, pair in found.items()}, answer)


@contextmanager
def _inference(model: nn.Module, doing: str = "judged") -> Iterator[None]:
    model.eval()
    with torch.inference_mode(), enough_memory(f"while the model was {doing}, {_SIZE} rows at once"):
        yield


def _answered(model: nn.Module, prepared: Prepared, part: PreparedRows) -> Answers:
    with _inference(model):
        return _JUDGES[prepared.task.kind](model, prepared, part)


def answers(model: nn.Module, prepared: Prepared, part: PreparedRows, rows: NDArray[np.int64]) -> NDArray[Any]:
    """Return a model's answer to each of some rows, in their order: a label, or the number of a regression.

    For tasks of `ONE_ANSWER`. The model is left in evaluation mode.
    """
    found = np.empty(len(part.examples), np.float32 if prepared.task.kind == "regression" else np.int64)
    with _inference(model):
        for some, scores, _ in _answers(model, part, maker_of(prepared.task.kind), rows):
            found[some] = (scores[:, 0] if prepared.task.kind == "regression" else scores.argmax(-1)).cpu().numpy()
    return found[rows]


def row_scores(model: nn.Module, prepared: Prepared, part: PreparedRows) -> NDArray[np.float32]:
    """Return the scores of each row of a task of `ONE_ANSWER`: (rows, labels), or (rows, 1) for a regression."""
    found: NDArray[Any] = np.empty(len(part.examples), object)
    with _inference(model, "run"):
        for rows, scores, _ in _answers(model, part, maker_of(prepared.task.kind)):
            found[rows] = list(scores.cpu().numpy())
    return np.stack(list(found))


def span_answers(model: nn.Module, part: PreparedRows, unanswerable: bool) -> list[tuple[str, float]]:
    """Return the answer to each question, and its probability among all parts of the text."""
    with _inference(model, "run"):
        return _span_texts(model, part, unanswerable)


def batch_of(prepared: Prepared, part: PreparedRows, rows: NDArray[np.int64]) -> Batch:
    """Make a batch of some rows of a task whose model reads sentences or images."""
    return maker_of(prepared.task.kind)(part.examples, rows)


def truths(part: PreparedRows) -> NDArray[Any]:
    """Return the right answer to each row of a task that has labels: a class, a score, or 0 and 1 for each label."""
    labels = part.examples.labels
    assert labels is not None
    return labels


def compared(prepared: Prepared, found: NDArray[Any], truth: NDArray[Any]) -> dict[str, float]:
    """Score predictions by every metric of the task."""
    return _scored(dict.fromkeys(prepared.task.metrics, (found, truth)))


def _answers(
    model: nn.Module, part: PreparedRows, make: MakeBatch, among: NDArray[np.int64] | None = None
) -> Iterator[tuple[NDArray[np.int64], Tensor, Batch]]:
    device = next(model.parameters()).device
    for rows in in_order(part.examples, _SIZE, among):
        batch = make(part.examples, rows).to(device)
        # in single precision on every device, as the delivered model runs elsewhere
        scores = scores_of(model, batch).float()
        if not scores.isfinite().all():  # argmax of NaN would look like a valid answer
            raise Diverged("the trained model's answers are no numbers (NaN or infinity); lower the learning rate")
        yield rows, scores, batch


def _one_each(model: nn.Module, prepared: Prepared, part: PreparedRows) -> Answers:
    found = answers(model, prepared, part, np.arange(len(part.examples)))
    return {name: (found, truths(part)) for name in prepared.task.metrics}


def _several_labels(model: nn.Module, prepared: Prepared, part: PreparedRows) -> Answers:
    """Answer with the labels whose sigmoid is above 0.5: those whose score is above 0."""
    truth = truths(part)
    found = np.empty(truth.shape, np.bool_)
    for rows, scores, _ in _answers(model, part, sentences):
        found[rows] = (scores > 0).cpu().numpy()
    return dict.fromkeys(prepared.task.metrics, (found, truth))


def _words(model: nn.Module, prepared: Prepared, part: PreparedRows) -> Answers:
    means, tokens = np.zeros(len(part.examples)), np.zeros(len(part.examples))
    for rows, found, batch in _answers(model, part, _words_maker(prepared)):
        losses = F.cross_entropy(found.flatten(0, -2), batch.labels.flatten(), ignore_index=IGNORED, reduction="none")
        means[rows], tokens[rows] = _mean_by_row(batch, losses.cpu().numpy())
    return {name: (means, tokens) for name in prepared.task.metrics if name not in WRITTEN}


def _mean_by_row(batch: Batch, losses: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the mean loss of each row's tokens, and how many tokens count; `losses` are in the order of the labels."""
    where = torch.nonzero(torch.ones_like(batch.labels) if batch.positions is None else batch.positions)
    row, counts = where[:, 0].cpu().numpy(), (batch.labels.flatten() != IGNORED).cpu().numpy()
    tokens = np.bincount(row[counts], minlength=len(batch.inputs)).astype(np.float64)
    sums = np.bincount(row[counts], losses[counts].astype(np.float64), minlength=len(batch.inputs))
    return sums / np.maximum(tokens, 1), tokens


def _words_maker(prepared: Prepared) -> MakeBatch:
    """Return the function that makes the batches on which a model of words is judged."""
    if prepared.task.kind != "masked-lm":
        return maker_of(prepared.task.kind)
    masking = Masking.of(prepared.text_tokeniser)
    # the same tokens are masked in every evaluation, so that scores of different models are comparable
    return lambda encoded, rows: masked(encoded, rows, masking, derive(0, "judge", int(rows[0])))


def _translations(model: nn.Module, prepared: Prepared, part: PreparedRows) -> Answers:
    found, wanted = _words(model, prepared, part), [name for name in prepared.task.metrics if name in WRITTEN]
    if not wanted:
        return found
    texts, rows = generated_texts(cast(TaskModel, model), prepared, part), cast(TranslationRows, part.rows)
    return {**found, **dict.fromkeys(wanted, (texts, rows.targets))}


def _spans(model: nn.Module, prepared: Prepared, part: PreparedRows) -> Answers:
    assert isinstance(part.rows, SpanRows)
    texts = [text for text, _ in _span_texts(model, part, not part.rows.answerable)]
    return dict.fromkeys(prepared.task.metrics, (texts, part.rows.texts))


def _span_texts(model: nn.Module, part: PreparedRows, unanswerable: bool) -> list[tuple[str, float]]:
    assert part.windows is not None
    assert isinstance(part.rows, SpanRows)
    found = np.empty(len(part.windows), object)
    for rows, scores, _ in _answers(model, part, sentences):
        found[rows] = list(scores.cpu().numpy())  # (tokens, 2) each
    starts, ends = [scores[:, 0] for scores in found], [scores[:, 1] for scores in found]
    return answers_with_probability(starts, ends, part.windows, part.rows, unanswerable)


_JUDGES: dict[str, Callable[[nn.Module, Prepared, PreparedRows], Answers]] = {
    "sequence-classification": _one_each,
    "image-classification": _one_each,
    "multi-label-classification": _several_labels,
    "regression": _one_each,
    "masked-lm": _words,
    "causal-lm": _words,
    "seq2seq-lm": _translations,
    "span-extraction": _spans,
}


def constant_baseline(prepared: Prepared, part: PreparedRows) -> Judged | None:
    """Score the best answer that ignores the input; None where there is none, as for SQuAD 1.1 and translation."""
    task = prepared.task
    if task.kind in (*ONE_ANSWER, "multi-label-classification"):
        answer, found = _one_answer(prepared, part)
    elif task.kind == "span-extraction":
        if not isinstance(part.rows, SpanRows) or part.rows.answerable:
            return None
        answer, found = "never giving an answer", dict.fromkeys(task.metrics, ([""] * len(part.rows), part.rows.texts))
    else:
        answer, found = "knowing only how frequent tokens are", _frequencies(prepared, part)
    return _judged(found, answer) if found else None


def _one_answer(prepared: Prepared, part: PreparedRows) -> tuple[str, Answers]:
    """Answer with the majority class, the best set of labels, or the mean of the training rows."""
    known, wanted, task = truths(prepared.train), truths(part), prepared.task
    if task.kind == "regression":
        answer, guess = "always answering the mean", np.full(len(wanted), known.mean())
    elif task.kind == "multi-label-classification":
        best = best_constant(known)
        names = " and ".join(repr(name) for name, has in zip(task.labels, best, strict=True) if has)
        answer, guess = f"always answering {names}", np.tile(best, (len(wanted), 1))
    else:
        label = int(np.bincount(known.astype(np.int64)).argmax())
        answer, guess = f"always answering {task.labels[label]!r}", np.full(len(wanted), label)
    return answer, dict.fromkeys(task.metrics, (guess, wanted))


def _frequencies(prepared: Prepared, part: PreparedRows) -> Answers:
    """Predict every token by its frequency in the training rows; unseen tokens count as seen once."""
    losses, make = -np.log(_shares(prepared)), _words_maker(prepared)
    means, tokens = np.zeros(len(part.examples)), np.zeros(len(part.examples))
    for rows in in_order(part.examples, _SIZE):
        batch = make(part.examples, rows)
        labels = batch.labels.flatten().numpy()
        means[rows], tokens[rows] = _mean_by_row(batch, losses[np.where(labels == IGNORED, 0, labels)])
    return {name: (means, tokens) for name in prepared.task.metrics if name not in WRITTEN}


def _shares(prepared: Prepared) -> NDArray[np.float64]:
    examples, counts = prepared.train.examples, np.ones(prepared.text_tokeniser.size)
    assert isinstance(examples, Encoded)
    make = _words_maker(prepared)
    if prepared.task.kind == "masked-lm":  # any token but the special ones may be masked
        tokens = examples.tokens.values
        hidden = tokens[~np.isin(tokens, Masking.of(prepared.text_tokeniser).spared)]
        counts += np.bincount(hidden, minlength=len(counts))
    else:
        for rows in in_order(examples, _SIZE):
            labels = make(examples, rows).labels.flatten().numpy()
            counts += np.bincount(labels[labels != IGNORED], minlength=len(counts))
    return counts / counts.sum()
