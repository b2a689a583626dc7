"""What a teacher said once is said again, to the same rows in whatever batch, and to no others."""

from pathlib import Path

import pytest
import torch
from tests.compress.tiny import job, squad
from torch import Tensor, nn

from formwright.compress.job import Started
from formwright.core.errors import IllegalInput
from formwright.nn.task_model import TaskModel
from formwright.study.config import TaskChoice
from formwright.train.fit import task_stream
from formwright.train.imported import task_model
from formwright.train.loop import scores_of
from formwright.train.remembered import Remembered, remembered


class Asked(nn.Module):
    """A teacher that counts how often it is asked."""

    def __init__(self, model: TaskModel) -> None:
        super().__init__()
        self.model = model
        self.times = 0

    def forward(self, *inputs: Tensor | None) -> Tensor:
        self.times += 1
        found: Tensor = self.model(*inputs)
        return found


def asked(started: Started) -> Asked:
    return Asked(task_model(started.begun.imported, started.begun.prepared, started.training).eval())


def check(started: Started, teacher: Asked, memory: Remembered, steps: int) -> None:
    """See that batches are answered as the teacher would, and from memory."""
    stream, before = task_stream(started.begun.prepared, started.training.recipe), teacher.times
    with torch.inference_mode():
        for step in range(steps):
            batch = stream.batch(step)
            wanted = scores_of(teacher.model, batch)
            found = scores_of(memory, batch)
            assert found.shape == wanted.shape
            real = torch.ones_like(wanted[..., 0], dtype=torch.bool) if wanted.ndim == 2 else batch.mask
            compared = slice(None) if real is None else real
            assert (found[compared] - wanted[compared]).abs().max() < 1e-5
    assert teacher.times == before


@pytest.mark.slow
def test_rows_in_any_batch_are_answered_as_the_teacher_would_and_it_is_asked_once(tmp_path: Path) -> None:
    started, path = job(tmp_path).started(), tmp_path / "answers.safetensors"
    teacher = asked(started)
    check(started, teacher, remembered(teacher, started.begun.prepared, path), steps=12)
    content, times = path.read_bytes(), teacher.times
    check(started, teacher, remembered(teacher, started.begun.prepared, path), steps=3)
    assert (path.read_bytes(), teacher.times) == (content, times)  # the file is read
    path.unlink()
    remembered(teacher, started.begun.prepared, path)
    assert path.read_bytes() == content  # whatever was done meanwhile


@pytest.mark.slow
@pytest.mark.parametrize("spans", [False, True])
def test_numbers_and_spans_are_remembered_too(spans: bool, tmp_path: Path) -> None:
    if spans:
        started = job(tmp_path, task=TaskChoice("squad", str(squad(tmp_path)))).started()
    else:
        started = job(tmp_path, scored=True).started()
    teacher = asked(started)
    check(started, teacher, remembered(teacher, started.begun.prepared, tmp_path / "answers"), steps=6)


@pytest.mark.slow
def test_the_teacher_is_asked_where_a_row_is_not_known(tmp_path: Path) -> None:
    started, path = job(tmp_path).started(), tmp_path / "answers"
    teacher = asked(started)
    memory = remembered(teacher, started.begun.prepared, path)
    before, other = teacher.times, torch.full((2, 5), 7)
    assert memory(other).tolist() == teacher.model(other, None, None).tolist()
    assert teacher.times == before + 1
    path.write_bytes(b"half of it")
    with pytest.raises(IllegalInput, match="remove it, and the teacher is asked anew"):
        remembered(teacher, started.begun.prepared, path)
