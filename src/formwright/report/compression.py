"""The search of a compressed model, read from its log: teacher, allowed widths, targets, and models chosen for them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

from formwright.core.records import History, Objective, Trial
from formwright.pipeline.chosen_designs import best_within
from formwright.pipeline.delivered import misses
from formwright.report.final_models import FinalModel, number_in, numbers_in, undeliverable
from formwright.study.events import Event

Part = str  # heads, cross, channels, or the option of another elastic field, such as "mixer_experts"
Widths = tuple[tuple[int, ...], ...]  # of each layer, from the input up


@dataclass(frozen=True)
class SpaceTarget:
    """A cost target of the search space, and the cost of the nearest sub-network."""

    wanted: float
    met: float

    @property
    def off(self) -> float:
        """Return the relative miss: negative where the sub-network costs less."""
        return self.met / self.wanted - 1


@dataclass(frozen=True)
class CompressionFacts:
    """The search of a compressed model; 0 heads or channels leave that part of a layer out.

    `cost` is what the targets count, such as `macs`; `full_heads` and `full_channels` are the model's own. `cross` are
    heads of attention to an encoder, empty where no layer has any; `further` are other parts by their options, full and
    as choices. Layers are those of the encoder, then the decoder's. `counted` is the number of sub-networks, if noted.
    """

    model: str
    teacher: FinalModel
    full_heads: tuple[int, ...]
    full_channels: tuple[int, ...]
    heads: Widths
    channels: Widths
    hidden: tuple[int, ...]
    cost: str
    targets: tuple[SpaceTarget, ...]
    full_cross: tuple[int, ...] = ()
    cross: Widths = ()
    further: Mapping[Part, tuple[tuple[int, ...], Widths]] = field(default_factory=dict)
    counted: int | None = None

    @property
    def parts(self) -> "dict[Part, tuple[tuple[int, ...], Widths]]":
        """Return the full widths and the choices of each part that layers have."""
        known: dict[Part, tuple[tuple[int, ...], Widths]] = {
            "heads": (self.full_heads, self.heads),
            "cross": (self.full_cross, self.cross),
            "channels": (self.full_channels, self.channels),
            **self.further,
        }
        return {name: both for name, both in known.items() if any(both[0])}

    @property
    def layers(self) -> int:
        return len(self.full_heads)

    @property
    def count(self) -> int:
        """Return the number of sub-networks."""
        if self.counted is not None:
            return self.counted
        choices = (*self.heads, *self.cross, *self.channels, self.hidden)
        return prod(max(1, len(one)) for one in choices)


def compression(events: Iterable[Event]) -> CompressionFacts | None:
    """Read the last compression note; None if there is none or it describes no space."""
    notes = [event.data["compress"] for event in events if event.kind == "note" and "compress" in event.data]
    note = _mapping(notes[-1]) if notes else {}
    space = _mapping(note.get("space"))
    full, heads, channels = (_widths(space.get(name)) for name in ("full", "heads", "channels"))
    cross = _widths(space.get("cross")) or ((0,),) * len(full)
    rows = [(*layer, 0)[:3] for layer in full]  # heads, channels, and heads of attention to an encoder
    if not full or not len(full) == len(heads) == len(channels) == len(cross) or any(len(one) != 3 for one in rows):
        return None
    costs = [numbers_in(row) for row in note["targets"]] if isinstance(note.get("targets"), list) else []
    return CompressionFacts(
        model=str(note.get("model", "unnamed")),
        teacher=_teacher(note),
        full_heads=tuple(most for most, _, _ in rows),
        full_channels=tuple(most for _, most, _ in rows),
        full_cross=tuple(most for _, _, most in rows),
        cross=tuple(tuple(sorted(set(layer))) for layer in cross),
        heads=tuple(tuple(sorted(set(layer))) for layer in heads),
        channels=tuple(tuple(sorted(set(layer))) for layer in channels),
        hidden=next(iter(_widths([space.get("hidden")])), ()),
        further=dict(_further(space.get("further"), len(full))),
        counted=space["count"] if type(space.get("count")) is int else None,
        cost=str(note.get("cost", "macs")),
        targets=tuple(SpaceTarget(row["target"], row["cost"]) for row in costs if row.get("target") and "cost" in row),
    )


def _further(given: Any, layers: int) -> Iterator[tuple[Part, tuple[tuple[int, ...], Widths]]]:
    """Read other parts; those that are not given for every layer are left out."""
    for name, part in _mapping(given).items():
        (full, *_), widths = _widths([_mapping(part).get("full")]) or ((),), _widths(_mapping(part).get("widths"))
        if len(full) == len(widths) == layers:
            yield name, (full, tuple(tuple(sorted(set(layer))) for layer in widths))


def with_measured_teacher(found: CompressionFacts | None, models: Iterable[FinalModel]) -> CompressionFacts | None:
    """Add the costs of the teacher that were measured together with the other models."""
    teacher = next((model for model in models if model.role == "teacher"), None)
    if found is None or teacher is None:
        return found
    return replace(found, teacher=replace(found.teacher, costs={**found.teacher.costs, **teacher.costs}))


def with_teacher(models: tuple[FinalModel, ...], found: CompressionFacts | None) -> tuple[FinalModel, ...]:
    """Put the teacher first, even before a note says that it was delivered."""
    if found is None or any(model.role == "teacher" for model in models):
        return models
    return found.teacher, *models


def _teacher(note: Mapping[str, Any]) -> FinalModel:
    teacher = _mapping(note.get("teacher"))
    return FinalModel(
        name=str(note.get("model", "unnamed")),
        role="teacher",
        params=number_in(teacher, "params"),
        validation=numbers_in(teacher.get("validation")),
        test=numbers_in(teacher.get("test")),
        costs={name: value for name, value in numbers_in(teacher).items() if name != "params"},
    )


def _widths(given: Any) -> Widths:
    """Read lists of whole numbers; empty if any of them is empty or holds anything else."""
    rows = given if isinstance(given, list) else []
    known = all(isinstance(row, list) and row and all(type(one) is int and one >= 0 for one in row) for row in rows)
    return tuple(map(tuple, rows)) if known else ()


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


@dataclass(frozen=True)
class AskedTarget:
    """A limit under a name, and the model that was delivered for it, if one was.

    `digest` is the design that was chosen. `counted` is its cost during the search, `met` the measured cost of the
    model. `tried` is the number of designs that were measured above the limit.
    """

    name: str
    limit: Objective
    digest: str | None = None
    model: FinalModel | None = None
    counted: float | None = None
    met: float | None = None
    tried: int = 0

    @property
    def exceeded(self) -> bool:
        return self.met is not None and not self.limit.meets(self.met)

    @property
    def shared(self) -> bool:
        """Return whether the model was delivered under the name of another target."""
        return self.model is not None and self.model.name != self.name


def asked_targets(
    config: Mapping[str, Any], history: History, events: Sequence[Event], models: Iterable[FinalModel]
) -> tuple[AskedTarget, ...]:
    """Read the targets of a study, in their order."""
    targets = config.get("targets") or {}
    if not targets:
        return ()
    goal, missed, known = Objective.parse(config["objectives"][0]), misses(events), tuple(models)
    chosen = best_within(history, goal, targets, undeliverable(events), missed)
    return tuple(
        _asked(name, Objective.parse(text), chosen.get(name), known, len(missed.get(name, ())))
        for name, text in targets.items()
    )


def _asked(name: str, limit: Objective, trial: Trial | None, models: Sequence[FinalModel], tried: int) -> AskedTarget:
    if trial is None:
        return AskedTarget(name, limit, tried=tried)
    assert trial.observation is not None
    digest, counted = trial.request.card.digest, trial.observation.metrics.get(limit.name)
    same = [model for model in models if model.digest == digest and model.role != "teacher"]
    model = next((model for model in same if model.name == name), same[0] if same else None)
    met = None if model is None else model.params if limit.name == "params" else model.costs.get(limit.name, counted)
    return AskedTarget(name, limit, digest, model, counted, met, tried)
