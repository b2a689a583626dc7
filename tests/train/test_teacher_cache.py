"""What a teacher said once is said again, to the same rows in whatever batch, and to no others."""

from pathlib import Path
from typing import Any

import pytest
import torch
from tests.compress.tiny import begun, compression, squad
from torch import Tensor, nn

from formwright.core.errors import IllegalInput
from formwright.nn.task_model import TaskModel
from formwright.pipeline.fine_tune import FineTune
from formwright.pipeline.pretrained import Pretrained
from formwright.pipeline.task_choice import TaskChoice
from formwright.train.fit import Training, task_stream
from formwright.train.loop import scores_of
from formwright.train.prepare import Prepared
from formwright.train.task_head import task_model
from formwright.train.teacher_cache import CachedTeacher, cached_teacher


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


def begin(folder: Path, **options: Any) -> tuple[Pretrained, Training]:
    run = begun(compression(folder, **options), folder / "out")
    stage = run.pipeline.of_kind(FineTune)[0]
    return stage.pretrained(run.stage(stage)), stage.training_of(run.stage(stage))


def asked(read: Pretrained, training: Training) -> Asked:
    return Asked(task_model(read.imported, read.prepared, training).eval())


def check(prepared: Prepared, training: Training, teacher: Asked, memory: CachedTeacher, steps: int) -> None:
    """See that batches are answered as the teacher would, and from memory."""
    stream, before = task_stream(prepared, training.recipe), teacher.times
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
    read, training = begin(tmp_path)
    path, teacher, prepared = tmp_path / "answers.safetensors", asked(read, training), read.prepared
    check(prepared, training, teacher, cached_teacher(teacher, prepared, path), steps=12)
    content, times = path.read_bytes(), teacher.times
    check(prepared, training, teacher, cached_teacher(teacher, prepared, path), steps=3)
    assert (path.read_bytes(), teacher.times) == (content, times)  # the file is read
    path.unlink()
    cached_teacher(teacher, prepared, path)
    assert path.read_bytes() == content  # whatever was done meanwhile


@pytest.mark.slow
@pytest.mark.parametrize("spans", [False, True])
def test_numbers_and_spans_are_remembered_too(spans: bool, tmp_path: Path) -> None:
    options = {"task": TaskChoice("squad", str(squad(tmp_path)))} if spans else {"scored": True}
    read, training = begin(tmp_path, **options)
    teacher = asked(read, training)
    check(read.prepared, training, teacher, cached_teacher(teacher, read.prepared, tmp_path / "answers"), steps=6)


@pytest.mark.slow
def test_the_teacher_is_asked_where_a_row_is_not_known(tmp_path: Path) -> None:
    (read, training), path = begin(tmp_path), tmp_path / "answers"
    teacher = asked(read, training)
    memory = cached_teacher(teacher, read.prepared, path)
    before, other = teacher.times, torch.full((2, 5), 7)
    assert memory(other).tolist() == teacher.model(other, None, None).tolist()
    assert teacher.times == before + 1
    path.write_bytes(b"half of it")
    with pytest.raises(IllegalInput, match=r"cannot read .*delete it"):
        cached_teacher(teacher, read.prepared, path)
