"""Baselines that ignore the input: the majority class, the mean, or token frequencies.

A score means little without its baseline. Every baseline is learned from the training rows, and
scored on the rows that the model is scored on.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from formwright.tasks.bootstrap import Tables
from formwright.tasks.encode import Encoded
from formwright.tasks.metrics import WRITTEN, best_constant
from formwright.tasks.rows import SpanRows
from formwright.train.judge import ONE_ANSWER, Answers, mean_by_row, scored, tables_of, truths, words_maker
from formwright.train.masking import Masking
from formwright.train.prepare import Prepared, PreparedRows
from formwright.train.streams import IGNORED, in_order

_SIZE = 64  # rows at once; tokens are masked batch by batch, as when a model is evaluated


@dataclass(frozen=True, eq=False)
class ConstantBaseline:
    """A description of the answer, its scores by metric, and the contribution of each row."""

    answer: str
    metrics: dict[str, float]
    tables: Tables


def constant_baseline(prepared: Prepared, part: PreparedRows) -> ConstantBaseline | None:
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
    return ConstantBaseline(answer, scored(found), tables_of(found)) if found else None


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
    losses, make = -np.log(_shares(prepared)), words_maker(prepared)
    means, tokens = np.zeros(len(part.examples)), np.zeros(len(part.examples))
    for rows in in_order(part.examples, _SIZE):
        batch = make(part.examples, rows)
        labels = batch.labels.flatten().numpy()
        means[rows], tokens[rows] = mean_by_row(batch, losses[np.where(labels == IGNORED, 0, labels)])
    return {name: (means, tokens) for name in prepared.task.metrics if name not in WRITTEN}


def _shares(prepared: Prepared) -> NDArray[np.float64]:
    examples, counts = prepared.train.examples, np.ones(prepared.text_tokeniser.size)
    assert isinstance(examples, Encoded)
    make = words_maker(prepared)
    if prepared.task.kind == "masked-lm":  # any token but the special ones may be masked
        tokens = examples.tokens.values
        hidden = tokens[~np.isin(tokens, Masking.of(prepared.text_tokeniser).spared)]
        counts += np.bincount(hidden, minlength=len(counts))
    else:
        for rows in in_order(examples, _SIZE):
            labels = make(examples, rows).labels.flatten().numpy()
            counts += np.bincount(labels[labels != IGNORED], minlength=len(counts))
    return counts / counts.sum()
