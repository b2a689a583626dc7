"""The stage that draws up a space of sub-networks of a model, for targets such as `macs<=50%` or `latency_ms<=8`."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from formwright.arch.card import Card
from formwright.core.errors import FormwrightError, IllegalInput, UnknownName
from formwright.core.files import read_json, unreadable, write_json
from formwright.core.limit_syntax import WrittenLimit
from formwright.core.options import Stage, option
from formwright.cost import COSTS, cost, is_measured
from formwright.pipeline.fine_tune import TEACHER, FineTune
from formwright.pipeline.run import StageRun
from formwright.pipeline.score_parts import MeasureParts, ScoreParts
from formwright.pipeline.task_choice import USUAL_LENGTH
from formwright.space.space import Space
from formwright.space.zoo.elastic import ElasticChoices

if TYPE_CHECKING:
    from formwright.pipeline.run_folder import Opened
    from formwright.supernet.automatic import BudgetMatch

USUAL = ("macs=75%", "macs=50%", "macs=35%", "macs=25%")


@dataclass(frozen=True)
class Target:
    """A most that a model may cost: a share of the given model's cost, or an amount."""

    cost: str
    amount: float
    is_share: bool = False

    @classmethod
    def parse(cls, text: str) -> "Target":
        """Read `macs<=50%`, `params<=10M` or `latency_ms<=8`; `=` means the same as `<=`."""
        limit = WrittenLimit.read(text)
        if limit is None or limit.relation == ">=":
            raise IllegalInput(f"cannot read the target {text!r}; write it like `macs<=50%` or `latency_ms<=8`")
        if limit.name not in COSTS.names():
            raise UnknownName("cost", limit.name, COSTS.names())
        if limit.amount <= 0 or (limit.is_share and limit.amount > 100):
            raise IllegalInput(f"the target {text!r} must be above 0 and, where it is a share, at most 100%")
        return cls(limit.name, limit.amount, limit.is_share)

    @property
    def name(self) -> str:
        """Name the model that is delivered for it."""
        return f"{self.cost}-{self.amount:.15g}{'pct' if self.is_share else ''}"

    def of(self, full: float) -> float:
        """Give the amount, where the given model costs so much: never more than that, which no sub-network exceeds."""
        return self.amount / 100 * full if self.is_share else min(self.amount, full)


Ranges = Mapping[str, tuple[float, float]]  # by cost: what the least that is still a model costs, and the given model


def limits(targets: Sequence[Target], ranges: Ranges) -> dict[str, str]:
    """Give the targets as limits by name; refuse one that no sub-network can meet, and tell the range that can.

    One above the given model's own cost is met by all of them, and limits to that cost; `redundant_targets` says so.
    """
    found: dict[str, str] = {}
    for target in targets:
        least, full = ranges[target.cost]
        amount = target.of(full)
        if amount < least:
            share = math.ceil(1000 * least / full) / 10  # what is reported can be asked for
            raise IllegalInput(
                f"the target {target.cost} {amount:.4g} ({amount / full:.1%} of the model's) cannot be met: "
                f"sub-networks of this model reach from {least:.4g} ({share:g}%) to {full:.4g}"
            )
        found[target.name] = f"{target.cost}<={amount!r}"
    return found


def redundant_targets(targets: Sequence[Target], ranges: Ranges) -> list[str]:
    """Say of each target above the given model's own cost that it asks for nothing."""
    return [
        f"the target {target.cost} {target.amount:.4g} lies above the model's own {ranges[target.cost][1]:.4g}: "
        "every sub-network meets it, so that the best of all is delivered for it"
        for target in targets
        if not target.is_share and target.amount > ranges[target.cost][1]
    ]


Costs = Mapping[str, Callable[[Card], float]]
MARGIN = 0.8  # how far between the least model and the lowest target the space begins: there is a choice at the target
NOTE = "compress"
_SPACE = "space.json"


@dataclass(frozen=True)
class Reach:
    """From where to where sub-networks shall cost, by one cost."""

    name: str
    cost: Callable[[Card], float]
    low: float
    high: float


@dataclass(frozen=True)
class DrawnSpace:
    """The sub-networks that may be searched, those that decided that, and the targets as limits by name."""

    choices: ElasticChoices
    met: "tuple[BudgetMatch, ...]"
    limits: Mapping[str, str]

    @property
    def space(self) -> Space:
        return self.choices.space

    @property
    def first(self) -> tuple[Any, ...]:
        """Give the designs that the search judges first: those that the space was drawn up by."""
        space = self.space
        return tuple(space.to_json(self.choices.design(one.widths)) for one in self.met)


@dataclass(frozen=True)
class DrawSpace(Stage):
    """Draw up the space of a model's sub-networks from the scores of its parts and the costs of its targets.

    Targets such as `macs<=50%`, `params<=10M` or `latency_ms<=8` say how small the delivered models shall be. Every
    layer may have the widths that it has in one of the sub-networks at `configurations` costs, which begin below the
    lowest target and end at the model or, where it is not `whole`, at the highest target.
    """

    NAME: ClassVar[str] = "space"
    PANELS: ClassVar[tuple[str, ...]] = ("space", "chosen-widths")

    teacher: FineTune = option(about="the stage that fine-tunes the model")
    scores: ScoreParts = option(about="the stage that scores its parts")
    latency: MeasureParts | None = option(None, "the stage that measures its parts, for targets in milliseconds")
    targets: tuple[str, ...] = option(USUAL, "maximum costs of the delivered models")
    configurations: int = option(5, "costs at which the space is drawn up: widths that a layer may have")
    whole: bool = option(True, "let the largest sub-network be the whole model")
    hidden: tuple[int, ...] = option((), "further hidden sizes to choose from")

    def __post_init__(self) -> None:
        found = self.parsed
        if not found or self.configurations < 2:
            raise IllegalInput(f"a space needs a target and 2 configurations, not {self.configurations}")
        if self.latency is None and any(target.cost == MeasureParts.COST for target in found):
            raise IllegalInput("a target in milliseconds needs the stage that measures the model's parts (latency)")
        if self.hidden and not self.teacher.hidden:
            raise IllegalInput("hidden sizes can be chosen where the teacher scores them (hidden=true)")

    # --- what follows from the options -------------------------------------------------------------------------------

    @property
    def parsed(self) -> tuple[Target, ...]:
        return tuple(Target.parse(text) for text in self.targets)

    @property
    def lowers(self) -> tuple[str, ...]:
        """Name the costs that a search lowers: those of the targets."""
        return tuple(dict.fromkeys(target.cost for target in self.parsed))

    @property
    def length(self) -> int:
        """Give the tokens of a row at which costs are counted."""
        return self.teacher.training.length or USUAL_LENGTH

    def card(self, run: StageRun) -> Card:
        return self.teacher.pretrained(run).card

    def costs(self, run: StageRun) -> Costs:
        """Give the costs that the targets name, the first of them first."""
        found: dict[str, Callable[[Card], float]] = {}
        for name in self.lowers:
            if self.latency is not None and name == self.latency.COST:
                found[name] = run.artifact(self.latency)
            elif is_measured(name):
                known: Any = COSTS.get(name)
                found[name] = run.run.once((name, self.length), partial(known.meter, self.length))
            else:
                found[name] = partial(cost, name=name, length=self.length)
        return found

    def ends(self, run: StageRun) -> ElasticChoices:
        """List the least that is still a model and the model itself; the drawn space lies between them."""
        from formwright.supernet.automatic import MULTIPLE
        from formwright.supernet.groups import groups

        ends: dict[str, list[tuple[int, ...]]] = {"heads": [], "channels": []}
        for group in groups(self.card(run)):
            least = 1 if group.kind == "heads" else MULTIPLE
            ends[group.kind].append(tuple(sorted({min(least, group.members), group.members})))
        return ElasticChoices(self.card(run), tuple(ends["heads"]), tuple(ends["channels"]), self.hidden)

    def example(self, run: StageRun) -> Space:
        """Give a space like the one that is drawn up, for checks before it is."""
        return self.ends(run).space

    def ranges(self, run: StageRun) -> Ranges:
        """Say what sub-networks cost, from the least to the model."""
        least, card = self.ends(run).smallest, self.card(run)
        return {name: (one(least), one(card)) for name, one in self.costs(run).items()}

    def cost_ranges(self, run: StageRun) -> list[Reach]:
        """Say from where to where the space is drawn up, by each cost that a target names, the first one first."""
        least, found = replace(self.ends(run), hidden=()).smallest, []
        for name, one in self.costs(run).items():
            full = one(self.card(run))
            amounts = [target.of(full) for target in self.parsed if target.cost == name]
            found.append(Reach(name, one, low_end(one(least), min(amounts)), full if self.whole else max(amounts)))
        return found

    def smallest_share(self, run: StageRun) -> float:
        """Give the cost of the smallest sub-network as a share of the model's."""
        return min(reach.low / reach.cost(self.card(run)) for reach in self.cost_ranges(run))

    # --- the stage ---------------------------------------------------------------------------------------------------

    def check(self, run: StageRun) -> None:
        ranges = self.ranges(run)
        limits(self.parsed, ranges)
        for line in redundant_targets(self.parsed, ranges):
            run.tell(line)

    def make(self, run: StageRun) -> None:
        """Draw up the space (EFTNAS, Algorithm 1), from the lower to the higher end of the first cost.

        For each further cost the space has the sub-network at its lower end too, or else its targets might not be met.
        """
        from formwright.supernet.automatic import Thresholds, automatic, targets_between

        scores, card, reaches = run.artifact(self.scores).space, self.card(run), self.cost_ranges(run)
        first, *others = [(Thresholds(card, scores, one.cost, measure=one.name), one) for one in reaches]
        further = [thresholds.nearest(one.low) for thresholds, one in others]
        goals = targets_between(first[1].low, first[1].high, self.configurations)
        choices, met = automatic(first[0], goals, whole=self.whole, hidden=self.hidden, further=further)
        found = {"choices": choices.to_json(), "met": [asdict(one) for one in met]}
        write_json(run.folder / _SPACE, found | {"limits": limits(self.parsed, self.ranges(run))})
        for line in (f"the search space has {choices.count:.3g} sub-networks", *closeness(met)):
            run.tell(line)

    def load(self, run: StageRun) -> DrawnSpace:
        from formwright.supernet.automatic import BudgetMatch

        path = run.folder / _SPACE
        try:
            data = read_json(path)
            met = [BudgetMatch(**{**one, "widths": tuple(map(tuple, one["widths"]))}) for one in data["met"]]
            return DrawnSpace(ElasticChoices.from_json(data["choices"]), tuple(met), dict(data["limits"]))
        except (ValueError, TypeError, KeyError, FormwrightError) as error:
            raise unreadable(path, error) from None

    def note(self, run: StageRun, opened: "Opened") -> None:
        """Note once in the log of a study what the sub-networks may be, and how closely the targets were met.

        Targets in other costs than the first stand by themselves, as `further`.
        """
        from formwright.pipeline.delivered import delivered
        from formwright.study.identity import own_name
        from formwright.supernet.automatic import full_widths

        if any(NOTE in event.data for event in opened.log.read() if event.kind == "note"):
            return
        drawn, name, teacher = run.artifact(self), self.lowers[0], delivered(opened).get(TEACHER)
        facts = {
            "model": self.teacher.pretrained(run).name,
            "task": run.task(self.teacher.task).name,
            "cost": name,
            "space": {
                "full": [list(one) for one in full_widths(drawn.choices.card)],
                "heads": [list(one) for one in drawn.choices.heads],
                "channels": [list(one) for one in drawn.choices.feed_forward],
                "hidden": list(drawn.choices.hidden) or [drawn.choices.card.output_width],
            },
            "targets": [{"target": one.target, "cost": one.cost} for one in drawn.met if one.measure == name],
            "further": [asdict(one) for one in drawn.met if one.measure != name],
        }
        if teacher is not None:
            known: dict[str, Any] = {"validation": teacher.validation, "test": teacher.test, "params": teacher.params}
            facts |= {TEACHER: known | dict(teacher.costs)}
        opened.log.append("note", own_name(), {NOTE: facts})


def low_end(least: float, lowest: float) -> float:
    """Give the cost that a space begins at: below the lowest target and, where that can be, not below the least model.

    `least` is what the least model of the full hidden size costs; a narrower one may cost less than that.
    """
    return least + MARGIN * (lowest - least) if lowest > least else MARGIN * lowest


def closeness(met: "Sequence[BudgetMatch]") -> list[str]:
    """Say at which costs the space was drawn up, and how close sub-networks came to them."""
    by_cost: dict[str, list[str]] = {}
    for one in met:
        by_cost.setdefault(one.measure, []).append(f"{one.target:.4g} ({100 * one.off:+.1f} %)")
    return [f"drawn up at {name} {', '.join(said)}" for name, said in by_cost.items()]
