import pytest
import torch
from torch import Tensor

from formwright.core.codec import range_faults
from formwright.core.options import PartReader, PartWriter
from formwright.supernet.lessons import LESSONS, Answer, DesignOutput, Distil, InPlace, Labels, Lesson, StepAnswers
from formwright.train.distil import Answers, Mix, distilled
from formwright.train.losses import distillation, loss_of
from formwright.train.streams import Batch

KIND = "sequence-classification"
BATCH = Batch(torch.zeros(6, 3), torch.tensor([0, 1, 2, 0, 1, 2]))


def scores(seed: int) -> Tensor:
    return torch.randn(6, 3, generator=torch.Generator().manual_seed(seed)).requires_grad_()


def said(*answers: Tensor, teacher: Tensor | None = None) -> StepAnswers:
    """Give what designs say to a batch of six rows."""
    heard = None if teacher is None else Answer(teacher)
    return StepAnswers(len(answers), lambda batch: (DesignOutput(Answer(one), heard, batch) for one in answers))


SCORES, TEACHER = (scores(1), scores(2), scores(3)), scores(4).detach()
SAID = said(*SCORES, teacher=TEACHER)


def total(lesson: Lesson, of: StepAnswers = SAID) -> Tensor:
    return torch.stack(list(lesson.bind(KIND)(of, BATCH))).sum()


@pytest.mark.parametrize("lesson", [Labels(), Distil(0.3, 4.0), InPlace(0.2)], ids=lambda lesson: lesson.NAME)
def test_lessons_are_parts(lesson: Lesson) -> None:
    reader = PartReader()
    assert reader.finished(reader.read(Lesson, PartWriter().value(lesson)), "lesson") == lesson
    assert LESSONS.get(lesson.NAME) is type(lesson)


def test_labels_are_the_mean_over_the_designs_of_a_step() -> None:
    each = [loss_of(KIND)(one, BATCH) for one in SCORES]
    assert torch.allclose(total(Labels()), torch.stack(each).mean())


def test_distillation_mixes_labels_and_teacher() -> None:
    lesson = Distil(labels=0.3, temperature=3.0)
    assert lesson.NEEDS_TEACHER
    loss = distilled(KIND, Mix(0.3, 0.7, temperature=3.0))
    each = [loss(Answers(one, TEACHER), BATCH) for one in SCORES]
    assert len({float(one.detach()) for one in each}) == 3
    assert torch.allclose(total(lesson), torch.stack(each).mean())


def test_in_place_the_largest_learns_from_labels_and_teaches_the_others() -> None:
    largest, other = scores(1), scores(2)
    loss = total(InPlace(), said(largest, other))
    wanted = (loss_of(KIND)(largest, BATCH) + distillation(other, largest.detach(), 1.0)) / 2
    assert torch.allclose(loss, wanted)
    loss.backward()
    own = scores(1)
    (loss_of(KIND)(own, BATCH) / 2).backward()
    assert torch.allclose(largest.grad, own.grad)  # nothing flows back from what it teaches
    assert other.grad.abs().sum() > 0


def test_in_place_the_others_are_taught_at_the_temperature_and_by_some_labels() -> None:
    largest, other = scores(1), scores(2)
    loss = total(InPlace(labels=0.2, temperature=3.0), said(largest, other))
    taught = 0.2 * loss_of(KIND)(other, BATCH) + 0.8 * distillation(other, largest.detach(), 3.0)
    assert torch.allclose(loss, (loss_of(KIND)(largest, BATCH) + taught) / 2)


@pytest.mark.parametrize(
    ("lesson", "wrong"),
    [
        (Distil(-0.1), "labels"),
        (Distil(1.1), "labels"),
        (InPlace(temperature=0.0), "temperature"),
        (InPlace(labels=2.0), "labels"),
    ],
)
def test_options_out_of_range_are_found(lesson: Lesson, wrong: str) -> None:
    assert [fault.where for fault in range_faults(lesson, "lesson")] == [f"lesson.{wrong}"]
