"""Judges and predictions of kinds whose metrics compare names of labels: tags of words, and relations."""

from typing import cast

import numpy as np
from torch import nn

from formwright.tasks.conll import OUTSIDE
from formwright.tasks.kind import Pairs
from formwright.tasks.metrics import metric
from formwright.tasks.tag_tokens import TaggedTokens
from formwright.train.judge import labels_baseline, row_scores, truths
from formwright.train.predictions import Evaluation, Predictions, softmax
from formwright.train.prepare import Prepared, PreparedRows


def tags_each(model: nn.Module, prepared: Prepared, part: PreparedRows) -> Pairs:
    """Answer with the tag of each word."""
    found = [[name for name, _ in row] for row in _tagged(model, prepared, part)]
    return dict.fromkeys(prepared.task.metrics, (found, _true_tags(prepared, part)))


def tags_baseline(prepared: Prepared, part: PreparedRows) -> tuple[str, Pairs]:
    """Answer with the commonest tag."""
    labels, truth = prepared.task.labels, _true_tags(prepared, part)
    often = labels[int(np.bincount(prepared.train.rows.labels).argmax())]
    guess = [[often] * len(row) for row in truth]
    return f"always answering {often!r}", dict.fromkeys(prepared.task.metrics, (guess, truth))


def tags_predicted(model: nn.Module, prepared: Prepared, part: PreparedRows, _: Evaluation) -> Predictions:
    """Predict the tag of each word, with the probability of each."""
    found = _tagged(model, prepared, part)
    return [([name for name, _ in row], [share for _, share in row]) for row in found]


def relations_each(model: nn.Module, prepared: Prepared, part: PreparedRows) -> Pairs:
    """Answer with one relation for each row."""
    found = np.stack(row_scores(model, prepared, part)).argmax(-1)
    return _named(prepared, dict.fromkeys(prepared.task.metrics, (found, truths(part))))


def relations_baseline(prepared: Prepared, part: PreparedRows) -> tuple[str, Pairs]:
    """Answer with the commonest relation."""
    answer, found = labels_baseline(prepared, part)
    return answer, _named(prepared, found)


def _named(prepared: Prepared, found: Pairs) -> Pairs:
    labels = prepared.task.labels
    named = {name: [[labels[int(label)] for label in side] for side in pair] for name, pair in found.items()}
    return {name: (named[name][0], named[name][1]) if metric(name).named else pair for name, pair in found.items()}


def _true_tags(prepared: Prepared, part: PreparedRows) -> list[list[str]]:
    return [[prepared.task.labels[tag] for tag in row] for row in part.rows.tags]


def _tagged(model: nn.Module, prepared: Prepared, part: PreparedRows) -> list[list[tuple[str, float | None]]]:
    """Return tag and probability of each word; a word that the model did not read is outside of everything."""
    labels, examples = prepared.task.labels, cast(TaggedTokens, part.examples)
    outside = OUTSIDE if OUTSIDE in labels else labels[0]
    found: list[list[tuple[str, float | None]]] = [[(outside, None)] * len(words) for words in part.rows.words]
    for row, scores in enumerate(row_scores(model, prepared, part)):
        shares, numbers = softmax(scores.astype(np.float64)), examples.words[row]
        for token in np.flatnonzero(numbers >= 0):
            best = int(shares[token].argmax())
            found[row][int(numbers[token])] = (labels[best], float(shares[token, best]))
    return found
