"""What the delivered models were asked to cost, which of them was chosen for each target, and whether it keeps it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from formwright.core.records import History, Objective, Trial
from formwright.report.models import FinalModel, undeliverable
from formwright.study.candidates import best_within
from formwright.study.events import Event
from formwright.study.too_slow import misses


@dataclass(frozen=True)
class AskedTarget:
    """A limit under a name, and the model that was delivered for it, if one was.

    `digest` is the design that was chosen. `counted` is what the search took it to cost, `met` what the model was found
    to cost in the end. `tried` are the designs that were measured beyond the limit.
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
        """Tell whether the model costs more than was asked for."""
        return self.met is not None and not self.limit.meets(self.met)

    @property
    def shared(self) -> bool:
        """Tell whether the model has the name of another target, for which it was delivered as well."""
        return self.model is not None and self.model.name != self.name


def asked_targets(
    config: Mapping[str, Any], history: History, events: Sequence[Event], models: Iterable[FinalModel]
) -> tuple[AskedTarget, ...]:
    """Read the targets of a study, in their order; none where it has none."""
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
    met = None if model is None else _cost(model, limit.name, counted)
    return AskedTarget(name, limit, digest, model, counted, met, tried)


def _cost(model: FinalModel, name: str, counted: float | None) -> float | None:
    """Give a cost of a model: as it was measured, or else as it was counted."""
    return model.params if name == "params" else model.costs.get(name, counted)
