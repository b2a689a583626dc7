"""Which designs of a study are delivered."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from formwright.arch.card import Card
from formwright.core.records import Objective, Trial
from formwright.search.fronts import best_of, longest
from formwright.search.scores import goals_of, score
from formwright.study.baseline import plain_design
from formwright.study.delivered import Role, undelivered
from formwright.study.study import Study


@dataclass(frozen=True)
class Candidate:
    """A design to deliver, what to call it, and why it was chosen."""

    name: str
    role: Role
    card: Card
    trial: int | None = None


def candidates(study: Study, keep: int, *, baseline: bool = True) -> list[Candidate]:
    """Choose the designs to deliver: the best ones or, with several goals, those of the front.

    Of a front the first is the best in the first goal, and the others are the least crowded. Designs that are known to
    fail are left out.
    """
    failed = undelivered(study.log)
    chosen = [trial for trial in best_of(study.history(), study.objectives) if trial.request.card.digest not in failed]
    role: Role = "front" if len(goals_of(study.objectives)) > 1 else "best"
    found = [Candidate(f"trial-{trial.number}", role, _card(trial), trial.number) for trial in chosen[:keep]]
    if baseline and found:
        plain = plain_design(found[0].card)
        found += [Candidate("baseline", "baseline", plain)] if plain.digest not in failed else []
    return found


def within_targets(study: Study, targets: Mapping[str, str]) -> list[Candidate]:
    """Choose for each target, a limit such as `macs<=1e8` under a name, the best design that keeps it.

    A design that is the best for several targets is delivered once, under the name of the first. Of equally good ones
    it is the cheapest.
    """
    found: dict[str, Candidate] = {}
    for name, chosen in _best_within(study, targets, undelivered(study.log)).items():
        found.setdefault(_card(chosen).digest, Candidate(name, "front", _card(chosen), chosen.number))
    return list(found.values())


def best_digests(study: Study, targets: Mapping[str, str]) -> dict[str, str]:
    """Give for each target the digest of the design that is delivered for it; none where nothing is."""
    return {name: _card(chosen).digest for name, chosen in _best_within(study, targets, undelivered(study.log)).items()}


def unmet_targets(study: Study, targets: Mapping[str, str]) -> list[str]:
    """Name the targets for which nothing is delivered: no design keeps them, or each that does has failed."""
    best = _best_within(study, targets, undelivered(study.log))
    return [name for name in targets if name not in best]


def failed_targets(study: Study, targets: Mapping[str, str]) -> list[str]:
    """Name the targets among them that some design keeps, though none that could be delivered."""
    kept = _best_within(study, targets, ())
    return [name for name in unmet_targets(study, targets) if name in kept]


def _best_within(study: Study, targets: Mapping[str, str], failed: Collection[str]) -> dict[str, Trial]:
    found: dict[str, Trial] = {}
    trials = [trial for trial in longest(study.history().finished) if trial.request.card.digest not in failed]
    for name, text in targets.items():
        goals = (study.objectives[0], Objective.parse(text))
        scores = score(trials, goals)
        kept = [index for index in range(len(trials)) if not scores.violations[index]]
        if kept:
            best = min(kept, key=lambda index: (scores.values[index, 0], _cost(trials[index], goals[1])))
            found[name] = trials[best]
    return found


def _cost(trial: Trial, limit: Objective) -> float:
    assert trial.observation is not None
    return trial.observation.metrics[limit.name]


def _card(trial: Trial) -> Card:
    assert isinstance(trial.request.card, Card)
    return trial.request.card
