"""Measure a design that has to keep a target in milliseconds, and refuse it where it does not."""

from collections.abc import Mapping

from formwright.core.records import Objective
from formwright.study.assemble import shared_weights
from formwright.study.candidates import Candidate
from formwright.study.identity import own_name
from formwright.study.limits import LATENCY
from formwright.study.measured import torch_ms
from formwright.study.place import Opened
from formwright.study.too_slow import Miss, TooSlow, exceeds, note_of


def measured_in_time(opened: Opened, candidate: Candidate) -> float | None:
    """Give the milliseconds of a design that has to keep targets in them; None where it has to keep no such target.

    One that misses a target is measured once more: a busy moment is no fault of the design. Then it is refused.
    """
    limits = [opened.config.targets[name] for name in candidate.keeps]
    timed = [limit for limit in limits if Objective.parse(limit).name == LATENCY]
    if not timed:
        return None
    model, length = shared_weights(opened.config).extracted(candidate.card), opened.config.training.length
    found = torch_ms(model, length)
    if any(exceeds({LATENCY: found}, limit) for limit in timed):
        found = min(found, torch_ms(model, length))
    refuse_slow(opened, candidate, {LATENCY: found})
    return found


def refuse_slow(opened: Opened, candidate: Candidate, costs: Mapping[str, float]) -> None:
    """Raise `TooSlow`, and note it, where what was measured of a design lies beyond a target that it has to keep."""
    targets = opened.config.targets
    beyond = [name for name in candidate.keeps if exceeds(costs, targets[name])]
    if not beyond:
        return
    found = {name: costs[Objective.parse(targets[name]).name] for name in beyond}
    missed = [Miss(name, candidate.card.digest, candidate.trial, measured) for name, measured in found.items()]
    opened.log.append("note", own_name(), note_of(missed))
    told = ", ".join(f"{measured:.4g} is beyond {targets[name]}" for name, measured in found.items())
    raise TooSlow(f"trial {candidate.trial} was measured, and {told}")
