"""The stage that makes the space of a model's versions of uniform shares: of its width, and of its depth."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from formwright.arch.card import Card
from formwright.core.files import read_json, unreadable, write_json
from formwright.core.options import option
from formwright.cost import macs
from formwright.pipeline.run import StageRun
from formwright.pipeline.score_parts import MeasureParts
from formwright.pipeline.targets import TargetedSpace, limits
from formwright.pipeline.teacher_stage import TeacherStage
from formwright.space.multiples import DEPTHS, WIDTHS, multiples
from formwright.space.space import Space

_LIMITS = "limits.json"


@dataclass(frozen=True)
class MultipleSpace:
    """The space of a model's versions, and the targets as limits by name."""

    space: Space
    limits: Mapping[str, str]


@dataclass(frozen=True)
class DrawMultiples(TargetedSpace):
    """Make the space of a model's versions that keep a share of all heads and channels, and a share of the layers.

    Targets such as `macs<=50%` or `params<=10M` say which of them are delivered.
    """

    NAME: ClassVar[str] = "multiples"

    teacher: TeacherStage = option(about="the stage that trains the model")
    widths: tuple[float, ...] = option(WIDTHS, "shares of the heads and channels of every layer")
    depths: tuple[float, ...] = option(DEPTHS, "shares of the layers, which are spread evenly")
    targets: tuple[str, ...] = option((), "maximum costs of the delivered models")
    latency: MeasureParts | None = option(None, "the stage that measures its parts, for targets in milliseconds")

    def __post_init__(self) -> None:
        self.check_targets()

    def example(self, run: StageRun) -> Space:
        """Give the space, which is known before the model is trained."""
        return multiples(self.card(run), self.widths, self.depths)

    def smallest(self, run: StageRun) -> Card:
        space = self.example(run)
        return space.card(space.from_json({"width": min(self.widths), "depth": min(self.depths)}))

    def smallest_share(self, run: StageRun) -> float:
        """Give the cost of the smallest sub-network as a share of the model's."""
        return macs(self.smallest(run), self.length) / macs(self.card(run), self.length)

    def make(self, run: StageRun) -> None:
        write_json(run.folder / _LIMITS, limits(self.parsed, self.ranges(run)))

    def load(self, run: StageRun) -> MultipleSpace:
        path = run.folder / _LIMITS
        try:
            return MultipleSpace(self.example(run), dict(read_json(path)))
        except (ValueError, TypeError) as error:
            raise unreadable(path, error) from None
