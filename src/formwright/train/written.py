"""What a trained model writes: its translations of a task's rows."""

import numpy as np

from formwright.nn.generate import Writing, write
from formwright.nn.task_model import TaskModel
from formwright.tasks.tokeniser import Tokeniser
from formwright.train.prepare import Part, Prepared
from formwright.train.streams import in_order, translations

_SIZE = 64  # rows translated at once


def writing_of(tokeniser: Tokeniser, length: int, beams: int = 1) -> Writing:
    """Say how texts are written that a tokeniser framed; most have one beam, the best next token each time."""
    special = tokeniser.special
    return Writing(special.begin, special.separator, special.pad or 0, length, beams)


def written(model: TaskModel, prepared: Prepared, part: Part, beams: int = 1) -> list[str]:
    """Translate rows of a task, and return the texts in the order of the rows."""
    tokeniser, device = prepared.text_tokeniser, next(model.parameters()).device
    texts = np.empty(len(part.examples), object)
    for rows in in_order(part.examples, _SIZE):
        batch = translations(part.examples, rows).to(device)  # type: ignore[arg-type]
        found = write(model, batch.inputs, batch.mask, writing_of(tokeniser, prepared.length, beams))
        texts[rows] = [tokeniser.decode(tokens) for tokens in found]
    return list(texts)
