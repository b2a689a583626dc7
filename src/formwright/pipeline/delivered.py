"""What the log of a study notes of its delivered models: scores, measured costs, failures and missed targets."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from formwright.arch.card import Card
from formwright.core.checks import folder_name
from formwright.core.records import Objective
from formwright.cost import is_measured, params
from formwright.nn.hf.model_folder import CARD
from formwright.pipeline.study_place import Opened
from formwright.study.events import Event
from formwright.study.store import Log
from formwright.tasks.bootstrap import Evidence

if TYPE_CHECKING:
    from formwright.evaluate.final import Verdict

MODELS = "models"
# the notes of measurement sessions, of final trainings that failed, and of designs that miss a target
MEASURED, UNDELIVERED, TOO_SLOW = "measured", "undelivered", "too slow"
Role = Literal["best", "front", "baseline", "teacher"]


def _notes(events: Iterable[Event], kind: str) -> list[Any]:
    return [event.data[kind] for event in events if event.kind == "note" and kind in event.data]


@dataclass(frozen=True)
class MeasurementSession:
    """Measured costs of models, by name and digest, of one row of `length` tokens; `busy`: so was the machine.

    All models were measured in turns, so that a busy time fell on all of them.
    """

    length: int
    device: str
    threads: int
    busy: bool
    costs: Mapping[str, Mapping[str, float]] = field(hash=False)
    digests: Mapping[str, str] = field(hash=False)

    def of(self, name: str, digest: str) -> Mapping[str, float]:
        """Give what was measured of a model; nothing where it was not there, or is another one by now."""
        return self.costs.get(name, {}) if self.digests.get(name) == digest else {}


def last_session(events: Iterable[Event]) -> MeasurementSession | None:
    notes = _notes(events, MEASURED)
    return MeasurementSession(**notes[-1]) if notes else None


@dataclass(frozen=True)
class Miss:
    """A design that was measured beyond a target, and what was measured."""

    target: str
    digest: str
    trial: int | None
    measured: float


def misses(events: Iterable[Event]) -> dict[str, dict[str, Miss]]:
    """Read from a log which designs missed which targets: by the name of the target, and by digest."""
    found: dict[str, dict[str, Miss]] = {}
    for miss in (Miss(**entry) for note in _notes(events, TOO_SLOW) for entry in note):
        found.setdefault(miss.target, {})[miss.digest] = miss
    return found


def exceeds(costs: Mapping[str, float], limit: str) -> bool:
    """Tell whether what was measured of a model lies beyond a limit, which the sum of its parts may have kept."""
    wanted = Objective.parse(limit)
    return wanted.name in costs and not wanted.meets(costs[wanted.name])


@dataclass(frozen=True)
class Delivered:
    """A model that was trained, tested and written; `costs` are what was measured of it.

    It was trained for `steps`, and has the weights that were the best on validation: those after `best_step`.
    `evidence` says for each split how sure the scores are.
    """

    name: str
    role: Role
    digest: str
    path: str
    params: int
    steps: int
    validation: Mapping[str, float]
    test: Mapping[str, float] | None
    trial: int | None
    costs: Mapping[str, float] = field(default_factory=dict, hash=False)
    best_step: int = 0
    evidence: Mapping[str, Evidence] = field(default_factory=dict, hash=False)

    @classmethod
    def of(
        cls, verdict: "Verdict", name: str, role: Role, folder: Path, costs: Mapping[str, float], trial: int | None
    ) -> "Delivered":
        """Describe a model that was written to a folder, by what its last evaluation found."""
        card, found = verdict.model.transformer.card, dict(verdict.validation)
        steps, test = verdict.spent.steps, None if verdict.test is None else dict(verdict.test)
        known = (steps, found, test, trial, costs, verdict.best_step, verdict.evidence)
        return cls(name, role, card.digest, str(folder), params(card), *known)


@dataclass(frozen=True)
class Undelivered:
    """A design whose final training failed, and why; it would fail again, and is not tried again."""

    name: str
    role: Role
    digest: str
    reason: str
    trial: int | None


def delivered(opened: Opened) -> dict[str, Delivered]:
    """Read from the log which models have been delivered, by name."""
    found = {}
    for note in _notes(opened.log.read(), "model"):
        # the folder may have moved, or be named from elsewhere, since the note was made
        path = opened.place.folder / MODELS / folder_name("a model", note["name"])
        evidence = {split: Evidence.from_json(kept) for split, kept in note.get("evidence", {}).items()}
        found[note["name"]] = Delivered(**{**note, "path": str(path), "evidence": evidence})
    return found


def reported(model: Delivered, split: str) -> Mapping[str, float]:
    """Give the scores of a model on a split; none where it was not tested."""
    return model.validation if split == "validation" else model.test or {}


def reported_split(model: Delivered) -> str:
    """Name the split whose scores count: test, where it was opened."""
    return "validation" if model.test is None else "test"


def measured_models(opened: Opened) -> dict[str, Delivered]:
    """Read the delivered models with the costs of the last measurement session, which may be compared."""
    session, models = last_session(opened.log.read()), delivered(opened)
    return models if session is None else {name: with_costs(model, session) for name, model in models.items()}


def with_costs(model: Delivered, session: MeasurementSession) -> Delivered:
    """Give a model with what was measured of it in a measurement session."""
    return replace(model, costs={**model.costs, **session.of(model.name, model.digest)})


def broken_limits(opened: Opened, model: Delivered, costs: Mapping[str, float] | None = None) -> list[Objective]:
    """List the measured limits of the search beyond which a found model is, by its costs or by other ones."""
    known = model.costs if costs is None else costs
    limits = [Objective.parse(text) for text in opened.search.limits if model.role != "baseline"]
    measured = [limit for limit in limits if is_measured(limit.name) and limit.name in known]
    return [limit for limit in measured if not limit.meets(known[limit.name])]


def undelivered(log: Log) -> dict[str, Undelivered]:
    """Read from the log which designs could not be delivered, by digest."""
    return {note["digest"]: Undelivered(**note) for note in _notes(log.read(), UNDELIVERED)}


def card_of_model(model: Delivered) -> Card:
    return Card.loads((Path(model.path) / CARD).read_bytes())
