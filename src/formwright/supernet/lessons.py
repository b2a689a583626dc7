"""Lessons: what the designs of a step learn from. A lesson is a part; bound to a kind of task it is a loss."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from formwright.core.options import Part, option
from formwright.core.registry import Registry

if TYPE_CHECKING:
    from torch import Tensor

    from formwright.train.streams import Batch

_HERE = "formwright.supernet.lessons"
LESSONS: Registry[Any] = Registry(
    "lesson",
    {"labels": f"{_HERE}:Labels", "distil": f"{_HERE}:Distil", "in-place": f"{_HERE}:InPlace"},
    "formwright.lessons",
)


@dataclass(frozen=True)
class StepAnswers:
    """What the designs of a step say to a batch, in the order of their rule, and what the teacher says, if any."""

    scores: "tuple[Tensor, ...]"
    teacher: "Tensor | None" = None


StepLoss = Callable[[StepAnswers, "Batch"], "Tensor"]


class Lesson(Part):
    """Be a lesson; `NEEDS_TEACHER` and `NEEDS_LARGEST` say what must be there: a teacher, the largest design first."""

    NEEDS_TEACHER: ClassVar[bool] = False
    NEEDS_LARGEST: ClassVar[bool] = False

    @classmethod
    def registry(cls) -> Registry[Any]:
        return LESSONS

    def bind(self, kind: str) -> StepLoss:
        """Give the loss of a step for a kind of task: the mean over its designs."""
        raise TypeError(f"{type(self).__name__} teaches nothing")


@dataclass(frozen=True)
class Labels(Lesson):
    """Learn from the labels alone, as SPOS (Guo et al. 2020, Eq. 5) and AutoFormer do."""

    NAME: ClassVar[str] = "labels"

    def bind(self, kind: str) -> StepLoss:
        from formwright.train.losses import loss_of  # noqa: PLC0415  lists and help texts need no torch

        loss = loss_of(kind)
        return lambda said, batch: _mean([loss(one, batch) for one in said.scores])


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
    temperature: float = option(2.0, "what scores are divided by before they are compared", least=0.01)

    def bind(self, kind: str) -> StepLoss:
        from formwright.train.distil import Answers, Mix, distilled  # noqa: PLC0415  lists and help texts need no torch

        loss = distilled(kind, Mix(self.labels, 1 - self.labels, temperature=self.temperature))

        def mean(said: StepAnswers, batch: "Batch") -> "Tensor":
            assert said.teacher is not None
            return _mean([loss(Answers(one, said.teacher), batch) for one in said.scores])

        return mean


@dataclass(frozen=True)
class InPlace(Lesson):
    """Let the largest design of a step learn from the labels, and the others from what it says (in-place distillation).

    The others have labels * L_task + (1 - labels) * T^2 KL(largest / T, design / T), without gradients into the largest
    (Yu and Huang 2019, section 3.2, where labels is 0 and T is 1; BigNAS and NASViT take it over). It needs no teacher.
    """

    NAME: ClassVar[str] = "in-place"
    NEEDS_LARGEST: ClassVar[bool] = True
    labels: float = option(0.0, "weight of the labels for all but the largest design", least=0, most=1)
    temperature: float = option(1.0, "what scores are divided by before they are compared", least=0.01)

    def bind(self, kind: str) -> StepLoss:
        from formwright.train.distil import Answers, Mix, distilled  # noqa: PLC0415  lists and help texts need no torch
        from formwright.train.losses import loss_of  # noqa: PLC0415

        own = loss_of(kind)
        taught = distilled(kind, Mix(self.labels, 1 - self.labels, temperature=self.temperature))

        def mean(said: StepAnswers, batch: "Batch") -> "Tensor":
            largest, *others = said.scores
            heard = largest.detach()
            return _mean([own(largest, batch), *(taught(Answers(one, heard), batch) for one in others)])

        return mean


def _mean(losses: "list[Tensor]") -> "Tensor":
    import torch  # noqa: PLC0415  lists and help texts need no torch

    return torch.stack(losses).mean()
