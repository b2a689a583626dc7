"""What a trained model writes: its translations of a task's rows."""

from dataclasses import replace

import numpy as np

from formwright.core.errors import IllegalInput
from formwright.nn.generate import Writing, write
from formwright.nn.task_model import TaskModel
from formwright.tasks.metrics import WRITTEN
from formwright.tasks.tokeniser import Tokeniser
from formwright.train.prepare import Part, Prepared
from formwright.train.streams import in_order, translations

_SIZE = 64  # rows translated at once


def writing_of(tokeniser: Tokeniser, length: int, beams: int = 1) -> Writing:
    """Say how texts are written that a tokeniser framed; most have one beam, the best next token each time."""
    special = tokeniser.special
    return Writing(special.begin, special.separator, special.pad or 0, length, beams)


def with_beams(prepared: Prepared, beams: int) -> Prepared:
    """Let models write with so many beams; refuse that for a task without texts to write."""
    if beams == 1:
        return prepared
    if not any(name in WRITTEN for name in prepared.task.metrics):
        judged = " and ".join(prepared.task.metrics)
        raise IllegalInput(
            f"{prepared.task.name} is judged by {judged}, for which nothing is written; leave --beams out"
        )
    return replace(prepared, beams=beams)


def written(model: TaskModel, prepared: Prepared, part: Part) -> list[str]:
    """Translate rows of a task with its number of beams, and return the texts in the order of the rows."""
    tokeniser, device = prepared.text_tokeniser, next(model.parameters()).device
    texts = np.empty(len(part.examples), object)
    for rows in in_order(part.examples, _SIZE):
        batch = translations(part.examples, rows).to(device)  # type: ignore[arg-type]
        found = write(model, batch.inputs, batch.mask, writing_of(tokeniser, prepared.length, prepared.beams))
        texts[rows] = [tokeniser.decode(tokens) for tokens in found]
    return list(texts)
