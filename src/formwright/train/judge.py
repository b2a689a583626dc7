"""Score a trained model by the metrics of its task, and the baseline that ignores the input.

A score means little without its baseline: the majority class, the mean, or token frequencies of the training rows,
scored on the rows that the model is scored on.
"""

from collections.abc import Iterator, Sequence
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
from formwright.tasks.encode import IGNORED, Encoded
from formwright.tasks.kind import Pairs as Answers
from formwright.tasks.kind import kind_of
from formwright.tasks.metrics import metric
from formwright.tasks.rows import TranslationRows
from formwright.tasks.span_windows import Windows, answers_with_probability
from formwright.tasks.tokeniser import Tokeniser
from formwright.train.loop import Diverged, enough_memory, scores_of
from formwright.train.prepare import Prepared, PreparedRows
from formwright.train.streams import Batch, KeptBatches, MakeBatch, Masking, in_order, masked

_SIZE = 64  # rows of one batch


def generation_settings(tokeniser: Tokeniser, length: int, beams: int = 1) -> GenerationSettings:
    """Return how texts of a tokeniser are generated; one beam is greedy decoding."""
    special = tokeniser.special
    return GenerationSettings(special.begin, special.separator, special.pad or 0, length, beams)


def with_beams(prepared: Prepared, beams: int) -> Prepared:
    """Set the number of beams of a task; raise where its metrics need no generated text."""
    if beams == 1:
        return prepared
    if not any(metric(name).written for name in prepared.task.metrics):
        raise IllegalInput(f"no metric of {prepared.task.name} needs generated text; leave out --beams")
    return replace(prepared, beams=beams)


def generated_texts(model: TaskModel, prepared: Prepared, part: PreparedRows) -> list[str]:
    """Translate rows of a task with its number of beams, and return the texts in the order of the rows."""
    tokeniser, device = prepared.text_tokeniser, next(model.parameters()).device
    settings = generation_settings(tokeniser, prepared.length, prepared.beams)
    texts = np.empty(len(part.examples), object)
    for rows in in_order(part.examples, _SIZE):
        batch = batch_of(prepared, part, rows).to(device)
        found = generate(model, batch.inputs, batch.mask, settings)
        texts[rows] = [tokeniser.decode(tokens) for tokens in found]
    return list(texts)


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
def _inference(*models: nn.Module, doing: str = "judged") -> Iterator[None]:
    for model in models:
        model.eval()
    with torch.inference_mode(), enough_memory(f"while the model was {doing}, {_SIZE} rows at once"):
        yield


def _answered(model: nn.Module, prepared: Prepared, part: PreparedRows) -> Answers:
    with _inference(model):
        return kind_of(prepared.task).judge(model, prepared, part)


def answers(
    models: Sequence[nn.Module], prepared: Prepared, part: PreparedRows, rows: NDArray[np.int64]
) -> list[NDArray[Any]]:
    """Return the answers of each model to some rows, in their order: labels, or the numbers of a regression.

    For kinds of tasks with one answer a row. Each batch is shown to all models, which are on one device, before their
    answers are fetched from it. The models are left in evaluation mode.
    """
    kind, found = kind_of(prepared.task), np.empty((len(models), len(part.examples)), object)
    assert kind.answer is not None
    with _inference(*models):
        for some, scores, _ in _scores(models, part, kind.batch, rows):
            for place, own in enumerate(scores):
                found[place][some] = list(kind.answer(own))
    return [np.array(list(own[rows])) for own in found]


def best_class(scores: Tensor) -> NDArray[np.int64]:
    """Return the class with the largest score of each row."""
    found: NDArray[np.int64] = scores.argmax(-1).cpu().numpy()
    return found


def number(scores: Tensor) -> NDArray[np.float32]:
    """Return the only score of each row."""
    found: NDArray[np.float32] = scores[:, 0].cpu().numpy()
    return found


def row_scores(model: nn.Module, prepared: Prepared, part: PreparedRows) -> list[NDArray[np.float32]]:
    """Return the scores of each row: (labels,), or those of its tokens."""
    found: NDArray[Any] = np.empty(len(part.examples), object)
    with _inference(model, doing="run"):
        for rows, scores, _ in _answers(model, part, kind_of(prepared.task).batch):
            found[rows] = list(scores.cpu().numpy())
    return list(found)


def span_answers(
    model: nn.Module, prepared: Prepared, part: PreparedRows, unanswerable: bool
) -> list[tuple[str, float]]:
    """Return the answer to each question, and its probability among all parts of the text."""
    with _inference(model, doing="run"):
        return _span_texts(model, prepared, part, unanswerable)


def batch_of(prepared: Prepared, part: PreparedRows, rows: NDArray[np.int64]) -> Batch:
    """Make a batch of some rows of a task."""
    return cast(Batch, kind_of(prepared.task).batch(part.examples, rows))


def truths(part: PreparedRows) -> NDArray[Any]:
    """Return the right answer to each row of a task that has labels: a class, a score, or 0 and 1 for each label."""
    labels = part.examples.labels
    assert labels is not None
    return labels


def compared(prepared: Prepared, found: NDArray[Any], truth: NDArray[Any]) -> dict[str, float]:
    """Score predictions by every metric of the task."""
    return _scored(dict.fromkeys(prepared.task.metrics, (found, truth)))


def _answers(
    model: nn.Module, part: PreparedRows, make: MakeBatch
) -> Iterator[tuple[NDArray[np.int64], Tensor, Batch]]:
    for rows, scores, batch in _scores([model], part, make):
        yield rows, scores[0], batch


def _scores(
    models: Sequence[nn.Module], part: PreparedRows, make: MakeBatch, among: NDArray[np.int64] | None = None
) -> Iterator[tuple[NDArray[np.int64], list[Tensor], Batch]]:
    """Yield batch by batch the row numbers, the scores of each model, and the batch."""
    device, batches = next(models[0].parameters()).device, part.batches or KeptBatches(most=0)
    for rows in in_order(part.examples, _SIZE, among):
        batch = batches.batch(make, part.examples, rows, device)
        # in single precision on every device, as the delivered model runs elsewhere
        scores = [scores_of(model, batch).float() for model in models]
        # argmax of NaN would look like a valid answer; the extremes are a third of the time of a look at every score
        ends = [end for own in scores if own.numel() for end in own.aminmax()]
        if ends and not torch.stack(ends).isfinite().all():
            raise Diverged("the answers of the trained model contain NaN or infinity; lower the learning rate")
        yield rows, scores, batch


def one_answer_each(model: nn.Module, prepared: Prepared, part: PreparedRows) -> Answers:
    """Answer each row with its class or number."""
    (found,) = answers([model], prepared, part, np.arange(len(part.examples)))
    return {name: (found, truths(part)) for name in prepared.task.metrics}


def several_labels_each(model: nn.Module, prepared: Prepared, part: PreparedRows) -> Answers:
    """Answer with the labels whose sigmoid is above 0.5: those whose score is above 0."""
    truth = truths(part)
    found = np.empty(truth.shape, np.bool_)
    for rows, scores, _ in _answers(model, part, kind_of(prepared.task).batch):
        found[rows] = (scores > 0).cpu().numpy()
    return dict.fromkeys(prepared.task.metrics, (found, truth))


def words(model: nn.Module, prepared: Prepared, part: PreparedRows, make: MakeBatch | None = None) -> Answers:
    """Score tokens by their loss; `make` makes the batches, by default as the kind of the task does."""
    means, tokens = np.zeros(len(part.examples)), np.zeros(len(part.examples))
    for rows, found, batch in _answers(model, part, make or kind_of(prepared.task).batch):
        losses = F.cross_entropy(found.flatten(0, -2), batch.labels.flatten(), ignore_index=IGNORED, reduction="none")
        means[rows], tokens[rows] = _mean_by_row(batch, losses.cpu().numpy())
    return {name: (means, tokens) for name in prepared.task.metrics if not metric(name).written}


def _mean_by_row(batch: Batch, losses: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the mean loss of each row's tokens, and how many tokens count; `losses` are in the order of the labels."""
    where = torch.nonzero(torch.ones_like(batch.labels) if batch.positions is None else batch.positions)
    row, counts = where[:, 0].cpu().numpy(), (batch.labels.flatten() != IGNORED).cpu().numpy()
    tokens = np.bincount(row[counts], minlength=len(batch.inputs)).astype(np.float64)
    sums = np.bincount(row[counts], losses[counts].astype(np.float64), minlength=len(batch.inputs))
    return sums / np.maximum(tokens, 1), tokens


def masked_words(model: nn.Module, prepared: Prepared, part: PreparedRows) -> Answers:
    """Score masked tokens by their loss."""
    return words(model, prepared, part, same_masks(prepared))


def same_masks(prepared: Prepared) -> MakeBatch:
    """Return batches in which the same tokens are masked every time, so that scores of models are comparable."""
    masking = Masking.of(prepared.text_tokeniser)
    return lambda encoded, rows: masked(encoded, rows, masking, derive(0, "judge", int(rows[0])))


def generated(model: nn.Module, prepared: Prepared, part: PreparedRows) -> Answers:
    """Score tokens by their loss, and generated texts by the metrics that need them."""
    found, wanted = words(model, prepared, part), [name for name in prepared.task.metrics if metric(name).written]
    if not wanted:
        return found
    texts, rows = generated_texts(cast(TaskModel, model), prepared, part), cast(TranslationRows, part.rows)
    return {**found, **dict.fromkeys(wanted, (texts, rows.targets))}


def spans(model: nn.Module, prepared: Prepared, part: PreparedRows) -> Answers:
    """Answer each question with a part of its text."""
    texts = [text for text, _ in _span_texts(model, prepared, part, not part.rows.answerable)]
    return dict.fromkeys(prepared.task.metrics, (texts, part.rows.texts))


def _span_texts(
    model: nn.Module, prepared: Prepared, part: PreparedRows, unanswerable: bool
) -> list[tuple[str, float]]:
    windows = cast(Windows, part.examples)
    found = np.empty(len(windows), object)
    for rows, scores, _ in _answers(model, part, kind_of(prepared.task).batch):
        found[rows] = list(scores.cpu().numpy())  # (tokens, 2) each
    starts, ends = [scores[:, 0] for scores in found], [scores[:, 1] for scores in found]
    return answers_with_probability(starts, ends, windows, part.rows, unanswerable)


def constant_baseline(prepared: Prepared, part: PreparedRows) -> Judged | None:
    """Score the best answer that ignores the input; None where there is none, as for SQuAD 1.1 and translation."""
    found = kind_of(prepared.task).baseline(prepared, part)
    return _judged(found[1], found[0]) if found is not None and found[1] else None


def labels_baseline(prepared: Prepared, part: PreparedRows) -> tuple[str, Answers]:
    """Answer with the majority class, the best set of labels, or the mean of the training rows."""
    task, wanted = prepared.task, truths(part)
    answer, guess = kind_of(task).constant_answers(truths(prepared.train), task.labels, len(wanted))
    return answer, dict.fromkeys(task.metrics, (guess, wanted))


def never_answering(prepared: Prepared, part: PreparedRows) -> tuple[str, Answers] | None:
    """Say of every question that it has no answer; None where all have one."""
    if part.rows.answerable:
        return None
    return "never giving an answer", dict.fromkeys(prepared.task.metrics, ([""] * len(part.rows), part.rows.texts))


def frequencies_baseline(prepared: Prepared, part: PreparedRows) -> tuple[str, Answers]:
    """Predict every token by its frequency in the training rows."""
    make, examples = cast(MakeBatch, kind_of(prepared.task).batch), prepared.train.examples
    counts = np.zeros(prepared.text_tokeniser.size)
    for rows in in_order(examples, _SIZE):
        labels = make(examples, rows).labels.flatten().numpy()
        counts += np.bincount(labels[labels != IGNORED], minlength=len(counts))
    return _by_frequency(counts, make, prepared, part)


def masked_frequencies_baseline(prepared: Prepared, part: PreparedRows) -> tuple[str, Answers]:
    """Predict every masked token by its frequency in the training rows; any but the special ones may be masked."""
    tokens = cast(Encoded, prepared.train.examples).tokens.values
    hidden = tokens[~np.isin(tokens, Masking.of(prepared.text_tokeniser).spared)]
    counts = np.bincount(hidden, minlength=prepared.text_tokeniser.size)
    return _by_frequency(counts, same_masks(prepared), prepared, part)


def _by_frequency(counts: NDArray[Any], make: MakeBatch, prepared: Prepared, part: PreparedRows) -> tuple[str, Answers]:
    losses = -np.log((counts + 1) / (counts + 1).sum())  # unseen tokens count as seen once
    means, tokens = np.zeros(len(part.examples)), np.zeros(len(part.examples))
    for rows in in_order(part.examples, _SIZE):
        batch = make(part.examples, rows)
        labels = batch.labels.flatten().numpy()
        means[rows], tokens[rows] = _mean_by_row(batch, losses[np.where(labels == IGNORED, 0, labels)])
    known = {name: (means, tokens) for name in prepared.task.metrics if not metric(name).written}
    return "knowing only how frequent tokens are", known
