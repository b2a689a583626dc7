"""Lessons: what the designs of a step learn from. A lesson is a part; bound to a kind of task it gives losses.

A loss is computed when it is asked for, and followed back before the next one: only one design's graph exists at once.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from formwright.core.errors import IllegalInput
from formwright.core.options import Part, option
from formwright.core.registry import Registry

if TYPE_CHECKING:
    from torch import Tensor

    from formwright.arch.card import Card
    from formwright.supernet.hull import Hull
    from formwright.supernet.network import SuperNetwork
    from formwright.supernet.rules import Rule
    from formwright.train.losses import StepLoss
    from formwright.train.streams import Batch

_CLOSE = 1e-3  # shares of steps that differ by less are the same
_HERE, _INNER = "formwright.supernet.lessons", "formwright.supernet.inner_lessons"
LESSONS: Registry[Any] = Registry(
    "lesson",
    {
        "labels": f"{_HERE}:Labels",
        "distil": f"{_HERE}:Distil",
        "in-place": f"{_HERE}:InPlace",
        "hidden-states": f"{_INNER}:HiddenStates",
        "attention-relations": f"{_INNER}:AttentionRelations",
        "two-stage": f"{_HERE}:TwoStage",
        "anchor": f"{_INNER}:Anchor",
    },
    "formwright.lessons",
)


@dataclass(frozen=True)
class Answer:
    """The scores of a model for a batch; if asked for, outputs of its `layers` and `maps` of its last attention.

    Layers are those of each stack, in the order of the card: an encoder-decoder has two.
    """

    scores: "Tensor"
    layers: "tuple[tuple[Tensor, ...], ...]" = ()  # (batch, tokens, width) each
    maps: "tuple[Tensor, ...]" = ()  # queries, keys and values, (batch, tokens, channels) each

    def detached(self) -> "Answer":
        """Give the same without a graph."""
        maps, *layers = (tuple(one.detach() for one in some) for some in (self.maps, *self.layers))
        return Answer(self.scores.detach(), tuple(layers), maps)


class DesignOutput(NamedTuple):
    """The answer of one design of a step, the teacher's answer, if there is one, and the rows that both were shown."""

    design: Answer
    teacher: Answer | None
    batch: "Batch"


@dataclass(frozen=True)
class StepAnswers:
    """The answers of a step's designs, in the order of their rule; `each` computes one when it is asked for."""

    number: int
    each: "Callable[[Batch], Iterator[DesignOutput]]"


@dataclass(frozen=True, eq=False)
class LessonContext:
    """What a lesson is bound to: the super-network, the hull of its space, its steps, and some held-out rows.

    `teacher` is the design that teaches where it is not the network's own teacher.
    """

    network: "SuperNetwork"
    hull: "Hull"
    steps: int
    held_out: "Batch | None" = None
    teacher: "Card | None" = None

    @property
    def teaching_card(self) -> "Card":
        """Give the design that teaches; where there is no teacher, it is the largest one."""
        return self.teacher or self.network.teacher_card or self.hull.largest


class Lesson(Part):
    """Base class of lessons.

    `NEEDS_TEACHER` and `NEEDS_LARGEST` say what must be there: a teacher, or the largest design first in every step;
    with both, one of the two will do. A lesson made of others asks each of them instead, in `check`.
    `NEEDS_HELD_OUT` asks for some held-out rows. `IN_STAGES` says that it may be a stage of a lesson of two stages.
    `SIGNALS` are what it reads in addition to scores: `layers`, `maps`.
    """

    NEEDS_TEACHER: ClassVar[bool] = False
    NEEDS_LARGEST: ClassVar[bool] = False
    NEEDS_HELD_OUT: ClassVar[bool] = False
    IN_STAGES: ClassVar[bool] = True
    SIGNALS: ClassVar[frozenset[str]] = frozenset()

    @classmethod
    def registry(cls) -> Registry[Any]:
        return LESSONS

    @property
    def switch_share(self) -> float | None:
        """Give the share of the steps after which another lesson follows; None for a lesson of one stage."""
        return None

    def check(self, rule: "Rule", has_teacher: bool) -> None:
        """Refuse a rule that lacks what this lesson needs in every step, where no teacher makes up for it."""
        taught = self.NEEDS_TEACHER and has_teacher
        if self.NEEDS_TEACHER and not taught and not (self.NEEDS_LARGEST and rule.LARGEST_FIRST):
            instead = ", or choose a rule that trains the largest design at every step, such as sandwich"
            raise IllegalInput(
                f"the lesson {self.NAME} needs a teacher: name the stage that makes it"
                + (instead if self.NEEDS_LARGEST else "")
            )
        if self.NEEDS_LARGEST and not taught and not rule.LARGEST_FIRST:
            raise IllegalInput(
                f"the lesson {self.NAME} needs a rule that trains the largest design at every step, such as sandwich, "
                f"and {rule.NAME} does not"
            )

    def check_designs(self, hull: "Hull", teacher: "Card | None" = None) -> None:
        """Refuse designs that cannot be compared as this lesson does; without a teacher the largest one teaches."""

    def bind(self, kind: str, context: LessonContext | None = None) -> "StepLoss":
        """Give the losses of a step for a kind of task: their sum is the mean over its designs.

        What a lesson learns or remembers itself becomes a part of the context's network, and so of its checkpoints.
        """
        raise NotImplementedError(f"{type(self).__name__}.bind")


@dataclass(frozen=True)
class Labels(Lesson):
    """Learn from the labels alone, as SPOS (Guo et al. 2020, Eq. 5) and AutoFormer do."""

    NAME: ClassVar[str] = "labels"

    def bind(self, kind: str, context: LessonContext | None = None) -> "StepLoss":
        from formwright.train.losses import loss_of  # noqa: PLC0415  lists and help texts need no torch

        loss = loss_of(kind)
        return mean_over_designs(lambda shown: loss(shown.design.scores, shown.batch))


@dataclass(frozen=True)
class Distil(Lesson):
    """Learn from a teacher's scores and from the labels.

    The loss of a design is labels * L_task + (1 - labels) * T^2 KL(teacher / T, design / T), and that of the step the
    mean (EFTNAS, Eq. 4 to 6). OFA adds both losses with equal weights, which is labels=0.5 but for a factor 2
    (Cai et al. 2020, section 3.3; `kd_ratio` 1 in the authors' code).
    """

    NAME: ClassVar[str] = "distil"
    NEEDS_TEACHER: ClassVar[bool] = True
    labels: float = option(0.1, "weight of the labels; the teacher has the rest", least=0, most=1)
    temperature: float = option(2.0, "temperature that divides scores before the softmax", least=0.01)

    def bind(self, kind: str, context: LessonContext | None = None) -> "StepLoss":
        from formwright.train.distil import Answers, Mix, distilled  # noqa: PLC0415  lists and help texts need no torch

        loss = distilled(kind, Mix(self.labels, 1 - self.labels, temperature=self.temperature))

        def of_design(shown: DesignOutput) -> "Tensor":
            assert shown.teacher is not None
            return loss(Answers(shown.design.scores, shown.teacher.scores), shown.batch)

        return mean_over_designs(of_design)


@dataclass(frozen=True)
class InPlace(Lesson):
    """Let the largest design of a step learn from the labels, and the others from its scores (in-place distillation).

    The others have labels * L_task + (1 - labels) * T^2 KL(largest / T, design / T), without gradients into the largest
    (Yu and Huang 2019, section 3.2, where labels is 0 and T is 1; BigNAS and NASViT take it over). It needs no teacher.
    """

    NAME: ClassVar[str] = "in-place"
    NEEDS_LARGEST: ClassVar[bool] = True
    labels: float = option(0.0, "weight of the labels for all but the largest design", least=0, most=1)
    temperature: float = option(1.0, "temperature that divides scores before the softmax", least=0.01)

    def bind(self, kind: str, context: LessonContext | None = None) -> "StepLoss":
        from formwright.train.distil import Answers, Mix, distilled  # noqa: PLC0415  lists and help texts need no torch
        from formwright.train.losses import loss_of  # noqa: PLC0415

        own = loss_of(kind)
        taught = distilled(kind, Mix(self.labels, 1 - self.labels, temperature=self.temperature))

        def losses(said: StepAnswers, batch: "Batch") -> "Iterator[Tensor]":
            largest = None
            for design, _, rows in said.each(batch):
                scores = design.scores
                del design  # otherwise it would live on while the next design is run
                if largest is None:
                    yield own(scores, rows) / divisor(said, rows, batch)
                    largest = scores.detach()
                else:
                    yield taught(Answers(scores, largest), rows) / divisor(said, rows, batch)
                del scores

        return losses


def mean_over_designs(loss: "Callable[[DesignOutput], Tensor]") -> "StepLoss":
    """Give every design of a step the same loss, divided so that the losses add up to their mean."""

    def losses(said: StepAnswers, batch: "Batch") -> "Iterator[Tensor]":
        for shown in said.each(batch):
            yield loss(shown) / divisor(said, shown.batch, batch)
            del shown  # otherwise it would live on while the next design is run

    return losses


def divisor(said: StepAnswers, rows: "Batch", batch: "Batch") -> float:
    """Give the divisor of a design's loss: the losses of a step add up to the mean over its designs.

    Designs that see the whole batch count alike. Where each sees rows of its own, it counts by the labels in them, of
    which a row of words or tags has several: the losses of equal designs add up to that of the whole batch.
    """
    if rows is batch:
        return said.number
    own, all_of_them = _labels_counted(rows), _labels_counted(batch)
    return all_of_them / own if own else math.inf


def _labels_counted(batch: "Batch") -> int:
    """Count the labels over which the loss of a batch is a mean; rows of a task may have several, but equally many."""
    from formwright.tasks.encode import IGNORED  # noqa: PLC0415  lists and help texts need no tokenisers

    if batch.labels.is_floating_point():
        return len(batch.labels)
    return int((batch.labels != IGNORED).sum())


@dataclass(frozen=True)
class TwoStage(Lesson):
    """Give one lesson first, and then another in which the largest design, as it is by then, is the teacher.

    The two stages are those of LightHuBERT (Wang et al. 2022), where the largest design is trained before the others;
    the rule `phases` with `largest` and `uniform` draws the designs for it. In the paper the same teacher (HuBERT)
    teaches both stages, by its hidden states at masked frames. Here the second teacher is a frozen copy of the largest
    design, which is kept in the checkpoints, and nothing is masked that the task does not mask.
    """

    NAME: ClassVar[str] = "two-stage"
    IN_STAGES: ClassVar[bool] = False
    first: Lesson = option(Distil(), "the lesson of the first stage")
    then: Lesson = option(Distil(), "the lesson of the second stage, whose teacher is the trained largest design")
    share: float = option(0.5, "share of the steps that the first stage has", least=0, most=1)

    def __post_init__(self) -> None:
        for lesson in (self.first, self.then):
            if not lesson.IN_STAGES:
                raise IllegalInput(f"a stage of {self.NAME} cannot be the lesson {lesson.NAME}")

    @property
    def NEEDS_TEACHER(self) -> bool:  # type: ignore[override]  # noqa: N802  as the other lessons have it
        return self.first.NEEDS_TEACHER

    @property
    def SIGNALS(self) -> frozenset[str]:  # type: ignore[override]  # noqa: N802
        return self.first.SIGNALS | self.then.SIGNALS

    @property
    def switch_share(self) -> float:
        return self.share

    def check(self, rule: "Rule", has_teacher: bool) -> None:
        try:
            self.first.check(rule, has_teacher)
        except IllegalInput as error:
            raise IllegalInput(
                f"the first lesson of {self.NAME} is not possible: {error}. Or set lesson.first=labels, which needs no "
                "teacher"
            ) from None
        self.then.check(rule, has_teacher=True)
        if rule.switches and not any(abs(one - self.share) < _CLOSE for one in rule.switches):
            raise IllegalInput(
                f"the first stage of the lesson {self.NAME} has {self.share:.3g} of the steps, and {rule.NAME} "
                f"changes at {', '.join(f'{one:.3g}' for one in rule.switches)}: give both the same share"
            )

    def check_designs(self, hull: "Hull", teacher: "Card | None" = None) -> None:
        self.first.check_designs(hull, teacher)
        self.then.check_designs(hull, hull.largest)

    def bind(self, kind: str, context: LessonContext | None = None) -> "StepLoss":
        import copy  # noqa: PLC0415

        assert context is not None, "a lesson of two stages is given in a super-network"
        network, switch = context.network, round(self.share * context.steps)
        network.frozen = copy.deepcopy(network.model).requires_grad_(False)
        first = self.first.bind(kind, context)
        then = self.then.bind(kind, replace(context, teacher=context.hull.largest))

        def losses(said: StepAnswers, batch: "Batch") -> "Iterator[Tensor]":
            if network.planned_step < switch:
                yield from first(said, batch)
                return
            if network.planned_step == switch:
                for kept, weight in zip(network.frozen.parameters(), network.model.parameters(), strict=True):
                    kept.data.copy_(weight.data)  # `load_state_dict` refuses the names of a library
            yield from then(network.taught_by_frozen(context.hull.largest), batch)

        return losses
