"""Updates: how the gradients of the losses of one step become one gradient.

The losses of a step come one after another: each is followed back before the next is computed, so that the memory of a
step hardly grows with their number.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from formwright.core.options import Part, option
from formwright.core.registry import Registry

if TYPE_CHECKING:
    from torch import Tensor, nn

    from formwright.train.losses import StepLoss
    from formwright.train.streams import Batch

_HERE = "formwright.train.updates"
UPDATES: Registry[Any] = Registry(
    "update", {"sum": f"{_HERE}:Sum", "projected": f"{_HERE}:Projected"}, "formwright.updates"
)
_MOST = 2.0  # the largest correction of a projection, as in the authors' code


class Update(Part):
    """Base class of updates: `backward` leaves the gradient of a step in its parameters, where there was none.

    `NEEDS_LARGEST` asks for the largest design first in every step.
    """

    NEEDS_LARGEST: ClassVar[bool] = False

    @classmethod
    def registry(cls) -> Registry[Any]:
        return UPDATES

    def backward(
        self, losses: "Iterable[tuple[int, Tensor]]", parameters: "Sequence[nn.Parameter]", progress: float
    ) -> None:
        """Follow each loss back as it comes; with it comes its place among the losses of its batch.

        `progress` is the share of the training's schedule that has passed. Where the number of steps changes on the
        way, what was left of the schedule is spread over the steps that are left.
        """
        raise NotImplementedError(f"{type(self).__name__}.backward")


@dataclass(frozen=True)
class Sum(Update):
    """Add up the gradients of all losses."""

    NAME: ClassVar[str] = "sum"

    def backward(
        self, losses: "Iterable[tuple[int, Tensor]]", parameters: "Sequence[nn.Parameter]", progress: float
    ) -> None:
        for _, loss in losses:
            loss.backward()


SUM = Sum()


@dataclass(frozen=True)
class Projected(Update):
    """Take out of one gradient, tensor by tensor, what points against the other (NASViT, Gong et al. 2022).

    g0 is the gradient of the first loss of a step, that of the largest design; g1 is the sum of all others. Where
    <g0, g1> < 0 the step follows g0 + (1 + c) g1 with c = -<g0, g1> / |g1|^2, at most 2: the largest design gives way.
    That is what the authors' code does; the paper's words are the other way round, which is `changes="others"`. Both
    gradients are kept until the step ends, which is most of its memory where a batch has few rows.
    """

    NAME: ClassVar[str] = "projected"
    NEEDS_LARGEST: ClassVar[bool] = True
    changes: Literal["largest", "others"] = option("largest", "whose gradient loses what points against the other")
    after: float = option(
        0.25, "share of the steps that add the gradients up before projections begin", least=0, most=1
    )

    def backward(
        self, losses: "Iterable[tuple[int, Tensor]]", parameters: "Sequence[nn.Parameter]", progress: float
    ) -> None:
        if progress < self.after:
            SUM.backward(losses, parameters, progress)
            return
        gradients: list[list[Tensor | None]] = [[None] * len(parameters), [None] * len(parameters)]
        for place, loss in losses:
            side = min(place, 1)
            for parameter, gradient in zip(parameters, gradients[side], strict=True):
                parameter.grad = gradient
            loss.backward()
            gradients[side] = [parameter.grad for parameter in parameters]
        for parameter, largest, others in zip(parameters, *gradients, strict=True):
            if largest is None or others is None:
                parameter.grad = others if largest is None else largest
            else:
                parameter.grad = self._joined(largest, others)

    def _joined(self, largest: "Tensor", others: "Tensor") -> "Tensor":
        kept, changed = (others, largest) if self.changes == "largest" else (largest, others)
        square = kept.square().sum()
        against = -(largest * others).sum() / square.clamp(min=1e-30)
        return changed + (1 + against.clamp(0, _MOST)) * kept


@dataclass(frozen=True)
class JoinedLosses:
    """The losses of a step, and how their gradients are joined: what `train` takes in place of a loss."""

    losses: "StepLoss"
    update: Update = SUM

    def __call__(self, answers: Any, batch: "Batch") -> "Iterator[Tensor]":
        return self.losses(answers, batch)
