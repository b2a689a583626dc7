"""The stage that draws up a space of sub-networks of a model from the scores of its parts."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar

from formwright.arch.card import Card
from formwright.core.errors import FormwrightError, IllegalInput
from formwright.core.files import read_json, unreadable, write_json
from formwright.core.options import option
from formwright.pipeline.fine_tune import TEACHER
from formwright.pipeline.run import StageRun
from formwright.pipeline.score_parts import MeasureParts, ScoreParts
from formwright.pipeline.targets import USUAL, TargetedSpace, limits
from formwright.pipeline.teacher_stage import TeacherStage
from formwright.space.elastic import ElasticChoices
from formwright.space.elastic_parts import layers_of, scored_parts
from formwright.space.space import Space

if TYPE_CHECKING:
    from formwright.pipeline.study_place import Opened
    from formwright.supernet.automatic import BudgetMatch

MARGIN = 0.8  # how far between the least model and the lowest target the space begins: there is a choice at the target
NOTE = "compress"
_SPACE = "space.json"
_COLUMNS = {"heads": "heads", "feed_forward": "channels", "cross": "cross"}  # options, as a note calls their lists


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
class DrawSpace(TargetedSpace):
    """Draw up the space of a model's sub-networks from the scores of its parts and the costs of its targets.

    Targets such as `macs<=50%`, `params<=10M` or `latency_ms<=8` say how small the delivered models shall be. Every
    layer may have the widths that it has in one of the sub-networks at `configurations` costs, which begin below the
    lowest target and end at the model or, where it is not `whole`, at the highest target.
    """

    NAME: ClassVar[str] = "space"
    PANELS: ClassVar[tuple[str, ...]] = ("space", "chosen-widths")

    teacher: TeacherStage = option(about="the stage that trains the model")
    scores: ScoreParts = option(about="the stage that scores its parts")
    latency: MeasureParts | None = option(None, "the stage that measures its parts, for targets in milliseconds")
    targets: tuple[str, ...] = option(USUAL, "maximum costs of the delivered models")
    configurations: int = option(5, "costs at which the space is drawn up: widths that a layer may have")
    whole: bool = option(True, "let the largest sub-network be the whole model")
    hidden: tuple[int, ...] = option((), "further hidden sizes to choose from")

    def __post_init__(self) -> None:
        self.check_targets()
        if not self.targets or self.configurations < 2:
            raise IllegalInput(f"a space needs a target and 2 configurations, not {self.configurations}")
        if self.hidden and not self.scores.hidden:
            raise IllegalInput("hidden sizes can be chosen where they are scored: scores with hidden=true")

    # --- what follows from the options -------------------------------------------------------------------------------

    def ends(self, run: StageRun) -> ElasticChoices:
        """List the least that is still a model and the model itself; the drawn space lies between them."""
        from formwright.supernet.automatic import MULTIPLE, choices_between, full_widths

        card = self.card(run)
        least = tuple(
            tuple(min(MULTIPLE if part.rounded else 1, part.most) for part in scored_parts(layer))
            for layer in layers_of(card)
        )
        return choices_between(card, [least, full_widths(card)], self.hidden)

    def example(self, run: StageRun) -> Space:
        """Give a space like the one that is drawn up, for checks before it is."""
        return self.ends(run).space

    def smallest(self, run: StageRun) -> Card:
        return self.ends(run).smallest

    def cost_ranges(self, run: StageRun) -> list[Reach]:
        """Say from where to where the space is drawn up, by each cost that a target names, the first one first."""
        least, found = replace(self.ends(run), hidden=(), decoder_hidden=()).smallest, []
        for name, one in self.costs(run).items():
            full = one(self.card(run))
            amounts = [target.of(full) for target in self.parsed if target.cost == name]
            found.append(Reach(name, one, low_end(one(least), min(amounts)), full if self.whole else max(amounts)))
        return found

    def smallest_share(self, run: StageRun) -> float:
        """Give the cost of the smallest sub-network as a share of the model's."""
        return min(reach.low / reach.cost(self.card(run)) for reach in self.cost_ranges(run))

    # --- the stage ---------------------------------------------------------------------------------------------------

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

        if any(NOTE in event.data for event in opened.log.read() if event.kind == "note"):
            return
        drawn, name, teacher = run.artifact(self), self.lowers[0], delivered(opened).get(TEACHER)
        facts = {
            "model": self.teacher.title(run),
            "task": run.task(self.teacher.task).name,
            "cost": name,
            "space": space_facts(drawn.choices),
            "targets": [{"target": one.target, "cost": one.cost} for one in drawn.met if one.measure == name],
            "further": [asdict(one) for one in drawn.met if one.measure != name],
        }
        if teacher is not None:
            known: dict[str, Any] = {"validation": teacher.validation, "test": teacher.test, "params": teacher.params}
            facts |= {TEACHER: known | dict(teacher.costs)}
        opened.log.append("note", own_name(), {NOTE: facts})


def space_facts(choices: ElasticChoices) -> dict[str, Any]:
    """List for the page the sizes that the scored parts of each layer have and may have, by option; 0: no such part.

    Parts of one option, such as several feed-forward maps, are summed up.
    """
    layers = [scored_parts(layer) for layer in layers_of(choices.card)]
    options = dict.fromkeys((*_COLUMNS, *(part.option for layer in layers for part in layer)))
    full = {name: [sum(one.most for one in layer if one.option == name) for layer in layers] for name in options}
    widths = {
        name: [
            _sums([choices.sizes_of(index, one) for one in layer if one.option == name])
            for index, layer in enumerate(layers)
        ]
        for name in options
    }
    return {
        "full": [list(row) for row in zip(*(full[name] for name in _COLUMNS), strict=True)],
        **{key: widths[name] for name, key in _COLUMNS.items()},
        "further": {name: {"full": full[name], "widths": widths[name]} for name in options if name not in _COLUMNS},
        "hidden": list(choices.hidden) or [choices.card.output_width],
        "count": choices.count,
    }


def _sums(sizes: Sequence[Sequence[int]]) -> list[int]:
    """List what parts may have together, each of one of its sizes."""
    return sorted({sum(one) for one in product(*sizes)})


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
