from dataclasses import dataclass, replace
from itertools import accumulate
from typing import ClassVar

import pytest
import torch
from torch import Tensor
from torch.profiler import ProfilerActivity, profile

from formwright.arch.card import Card
from formwright.arch.embeddings import TokenEmbedding
from formwright.arch.heads import HeadSpec
from formwright.arch.layers import Block, Stack
from formwright.arch.ops import Attention
from formwright.core.codec import range_faults
from formwright.core.errors import IllegalInput
from formwright.core.options import PartReader, PartWriter
from formwright.nn.build import build
from formwright.space.elastic import elastic
from formwright.supernet.hull import Hull
from formwright.supernet.inner_lessons import Anchor, AttentionRelations, HiddenStates
from formwright.supernet.lessons import (
    LESSONS,
    Answer,
    DesignOutput,
    Distil,
    InPlace,
    Labels,
    Lesson,
    LessonContext,
    StepAnswers,
    TwoStage,
    divisor,
)
from formwright.supernet.network import SuperNetwork
from formwright.supernet.rules import Largest, Phases, ProgressiveShrinking, Rule, Sandwich, Uniform
from formwright.tasks.encode import IGNORED
from formwright.train.distil import Answers, Mix, distilled
from formwright.train.hyperparameters import Hyperparameters
from formwright.train.loop import train
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


@dataclass(frozen=True)
class Alone(Labels):
    """A lesson that may be no stage of another."""

    NAME: ClassVar[str] = "alone"
    IN_STAGES: ClassVar[bool] = False


def test_a_lesson_says_itself_whether_it_may_be_a_stage() -> None:
    for first, then in ((Alone(), Labels()), (Labels(), Alone())):
        with pytest.raises(IllegalInput, match="alone"):
            TwoStage(first, then)


def test_a_first_stage_that_cannot_be_says_what_would_be_possible() -> None:
    with pytest.raises(IllegalInput, match=r"needs a teacher.*lesson\.first=labels"):
        TwoStage(Distil(), Distil()).check(Uniform(), has_teacher=False)


TWO_RULES = Phases((Largest(), Uniform(2)))


@pytest.mark.parametrize(
    ("lesson", "rule", "has_teacher"),
    [
        (Distil(), Sandwich(), False),
        (InPlace(), Uniform(2), True),
        (HiddenStates(), Uniform(), False),
        (Anchor(Distil()), Sandwich(), False),
        (Anchor(InPlace()), Uniform(2), True),
        (TwoStage(Distil(), InPlace()), Uniform(2), True),  # a random design would act as the largest
        (TwoStage(Distil(), InPlace()), Sandwich(), False),
        (TwoStage(InPlace(), Distil()), Uniform(2), True),
        (TwoStage(HiddenStates(), InPlace()), Uniform(), True),
        (TwoStage(HiddenStates(), Distil()), TWO_RULES, False),
        (TwoStage(Labels(), Distil()), ProgressiveShrinking(largest=0.25), False),
        (TwoStage(Labels(), Distil(), share=0.26), ProgressiveShrinking(largest=0.25), False),
    ],
)
def test_a_lesson_refuses_a_rule_without_what_it_learns_from(lesson: Lesson, rule: Rule, has_teacher: bool) -> None:
    with pytest.raises(IllegalInput):
        lesson.check(rule, has_teacher)


@pytest.mark.parametrize(
    ("lesson", "rule", "has_teacher"),
    [
        (Distil(), Uniform(), True),
        (HiddenStates(), Sandwich(), False),
        (AttentionRelations(), Uniform(), True),
        (TwoStage(Distil(), InPlace()), Sandwich(), True),
        (TwoStage(Labels(), Distil()), Uniform(), False),  # the second stage always has a teacher
        (TwoStage(InPlace(), HiddenStates()), Sandwich(), False),
        (TwoStage(HiddenStates(), HiddenStates()), TWO_RULES, True),
        (TwoStage(Labels(), Distil(), share=0.25), ProgressiveShrinking(largest=0.25), False),
    ],
)
def test_a_lesson_accepts_a_rule_that_gives_what_it_learns_from(lesson: Lesson, rule: Rule, has_teacher: bool) -> None:
    lesson.check(rule, has_teacher)


WORDS = 8_000
BLOCK = Block(16, Attention(4, 4), (24,), norm="pre")
WRITER = Card(decoder=Stack(TokenEmbedding(WORDS, 16, length=12), (BLOCK,) * 2, causal=True, final_norm=True))


class Sentences:
    """Sentences of random words, each of which is to be predicted."""

    def batch(self, step: int) -> Batch:
        tokens, labels = torch.randint(WORDS, (2, 8, 12), generator=torch.Generator().manual_seed(step))
        return Batch(tokens, labels.flatten(), positions=torch.ones(8, 12, dtype=torch.bool))


def peak(lesson: Lesson, designs: int) -> int:
    """Give the most bytes that torch holds at once in a step of so many designs, all of them the largest one."""
    teacher = build(WRITER, head=HeadSpec("causal-lm"), seed=2) if lesson.NEEDS_TEACHER else None
    network = SuperNetwork(build(WRITER, head=HeadSpec("causal-lm")), lambda rng, step: [WRITER] * designs, teacher)
    hull = Hull(elastic(WRITER, (1, 4), (12, 24)), WRITER, WRITER)
    loss = lesson.bind("causal-lm", LessonContext(network, hull, 4))
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as watched:
        train(network, Sentences(), loss, Hyperparameters(1, 8))
    events = (one for one in watched.profiler.kineto_results.events() if one.name() == "[memory]")
    return max(accumulate(one.nbytes() for one in sorted(events, key=lambda one: one.start_ns())))


ALL = [
    Labels(),
    Distil(),
    InPlace(),
    InPlace(labels=0.2),
    HiddenStates(),
    AttentionRelations(),
    TwoStage(Labels(), Distil(), share=0.0),  # in its second stage
    Anchor(),
]


def test_the_memory_of_a_step_is_measured_with_all_lessons() -> None:
    assert {lesson.NAME for lesson in ALL} == set(LESSONS.names())


@pytest.mark.parametrize("lesson", ALL, ids=str)
def test_designs_of_a_step_hardly_need_more_memory_than_one_even_for_scores_of_all_words(lesson: Lesson) -> None:
    one = peak(lesson, 1)
    assert one > 4 * 96 * WORDS  # the scores of a design at least
    assert peak(lesson, 4) <= 1.3 * one


def test_a_design_whose_rows_have_no_labels_does_not_count() -> None:
    batch = Batch(torch.zeros(2, 2), torch.tensor([[0, 1], [IGNORED, IGNORED]]))
    rows = [replace(batch, inputs=batch.inputs[[row]], labels=batch.labels[[row]]) for row in range(2)]
    assert [1 / divisor(said(scores(1), scores(2)), one, batch) for one in rows] == [1, 0]
