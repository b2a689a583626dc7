"""A cache of teacher outputs: the teacher runs once for every row, and later epochs read the cache."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor, nn

from formwright.core.errors import IllegalInput
from formwright.core.files import write_whole
from formwright.train.judge import batch_of
from formwright.train.loop import enough_memory, scores_of
from formwright.train.prepare import Prepared
from formwright.train.streams import Batch, in_order

_ROWS = 64  # rows of one batch


class CachedTeacher(nn.Module):
    """Return a teacher's outputs, from the cache where the row is known; the key of a row is the model's input."""

    def __init__(self, teacher: nn.Module, answers: dict[bytes, Tensor]) -> None:
        super().__init__()
        self.teacher = teacher
        self._answers = answers

    def forward(self, inputs: Tensor, mask: Tensor | None = None, types: Tensor | None = None, *more: Any) -> Tensor:
        """Return (batch, labels) scores; those of spans are (batch, tokens, 2)."""
        found = [self._answers.get(key) for key in _keys(Batch(inputs, inputs, mask, types))]
        known = [answer for answer in found if answer is not None]
        if len(known) < len(found):
            return self.teacher(inputs, mask, types, *more)
        return nn.utils.rnn.pad_sequence(known, batch_first=True).to(inputs.device)


def cached_teacher(
    teacher: nn.Module, prepared: Prepared, path: Path, after: Callable[[int], None] = lambda _: None
) -> CachedTeacher:
    """Return a teacher whose outputs for the training rows are read from `path`, or computed and saved there.

    The order of rows does not depend on the training, so that a resumed run gets the same outputs. `after` receives the
    number of rows computed so far.
    """
    answers = _read(path) if path.is_file() else None
    if answers is None:
        answers = _asked(teacher, prepared, after)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, save(answers))
        except OSError as error:
            raise IllegalInput(f"cannot write {path}: {error.strerror or error}") from error
    flat, sizes = answers["answers"], answers["sizes"].tolist()
    by_row, table = flat.split(sizes), dict[bytes, Tensor]()
    for rows in in_order(prepared.train.examples, _ROWS):
        keys = _keys(batch_of(prepared, prepared.train, rows))
        for row, key in zip(rows.tolist(), keys, strict=True):
            table[key] = by_row[row] if prepared.task.kind == "span-extraction" else by_row[row][0]
    return CachedTeacher(teacher, table)


def _asked(teacher: nn.Module, prepared: Prepared, after: Callable[[int], None]) -> dict[str, Tensor]:
    """Compute the outputs of all rows, concatenated, and the size of each row's part."""
    device, spans = next(teacher.parameters()).device, prepared.task.kind == "span-extraction"
    found = dict[int, Tensor]()
    teacher.eval()
    with torch.inference_mode(), enough_memory(f"while running the teacher, {_ROWS} rows at once"):
        for rows in in_order(prepared.train.examples, _ROWS):
            batch = batch_of(prepared, prepared.train, rows)
            for row, scores, tokens in zip(
                rows.tolist(), scores_of(teacher, batch.to(device)).float().cpu(), _lengths(batch), strict=True
            ):
                found[row] = scores[:tokens] if spans else scores[None]
            after(len(found))
    ordered = [found[row] for row in range(len(found))]
    return {"answers": torch.cat(ordered).clone(), "sizes": torch.tensor([len(one) for one in ordered])}


def _read(path: Path) -> dict[str, Tensor]:
    try:
        return load_file(path)
    except (OSError, SafetensorError) as error:
        raise IllegalInput(f"cannot read {path}: {error}; delete it to run the teacher again") from None


def _lengths(batch: Batch) -> list[int]:
    if batch.mask is None:
        return [batch.inputs.shape[1]] * len(batch.inputs)
    return batch.mask.sum(1).tolist()


def _keys(batch: Batch) -> list[bytes]:
    """Return the bytes of each row's input without its padding, which is on the right."""
    inputs = batch.inputs.cpu().numpy()
    types = None if batch.types is None else batch.types.cpu().numpy()
    keys = []
    for row, tokens in enumerate(_lengths(batch) if inputs.ndim == 2 else [None] * len(inputs)):
        parts = [inputs[row, :tokens]] if types is None else [inputs[row, :tokens], types[row, :tokens]]
        keys.append(b"".join(np.ascontiguousarray(part).tobytes() for part in parts))
    return keys
